#!/usr/bin/env bash
# publishers.sh DIR: the publishers' own code in DIR, from PyPI, at the versions that the golden values were made with.
#
# DIR/lerobot/bin/python runs LeRobot 0.6.1, DIR/openpi/bin/python openpi (rlinf-openpi 0.1.1). openpi wants an older transformers and NumPy,
# so it has an environment with these alone and takes torch from LeRobot's. Both run without a network, on a CPU. It takes three to ten minutes
# and 6.5 GB, since PyPI's torch is built for CUDA and does not start without NVIDIA's libraries.
#
# Debian 12 has Python 3.11 only. Where no newer one is found, root gets 3.13 from the sources of Debian 13, built in DIR/python (some four
# minutes more), for which apt installs a compiler and headers.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: publishers.sh DIR}"
target=$(cd "$1" && pwd)

# LeRobot wants Python 3.12 or newer, and its pinned NumPy has no build for those after 3.13.
found=""
for candidate in "$target/python/bin/python3" python3.12 python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[23]*/bin/python3 python3; do
  if "$candidate" -c 'import ensurepip, sys; sys.exit(not (3, 12) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
    found=$candidate
    break
  fi
done
build_python() {
  local work="$target/python-source" site
  rm -rf "$work" && mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends gcc libc6-dev make xz-utils libssl-dev zlib1g-dev libffi-dev libbz2-dev liblzma-dev libsqlite3-dev
  site=$(apt-get indextargets --format "\$(REPO_URI)" 'Label: Debian' 'Component: main' | head -1)
  # Lists beside those of the machine: it goes on to install from its own release alone.
  echo "deb-src $site trixie main" > "$work/sources.list"
  local apart=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
  apt-get "${apart[@]}" update -qq
  (cd "$work" && apt-get "${apart[@]}" source -qq --download-only --only-source python3.13 && tar -xf python3.13_*.orig.tar.xz)
  (cd "$work"/Python-3.13.* && ./configure --prefix="$target/python" --disable-test-modules && make -j"$(nproc)" OPT="-DNDEBUG -O1" && make install)
  rm -rf "$work"
}
if [ -z "$found" ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
    echo "error: no Python 3.12 or 3.13 with pip was found; LeRobot 0.6.1 needs one. Install it, name its folder in PATH, or run this as root on Debian." >&2
    exit 1
  fi
  build_python > "$target/python.log" 2>&1 &
  if ! wait $!; then
    tail -20 "$target/python.log" >&2
    exit 1
  fi
  found="$target/python/bin/python3"
fi

# Each is whole only when its mark is there: a run that was ended begins anew.
install() {
  local name=$1 mark="$target/$1/complete"
  cmp -s "$here/$name.txt" "$mark" && return
  rm -rf "${target:?}/$name"
  "$found" -m venv "$target/$name"
  [ "$name" = lerobot ] || ls -d "$target"/lerobot/lib/python3*/site-packages > "$(echo "$target/$name"/lib/python3*/site-packages)/lerobot.pth"
  "$target/$name/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --no-deps --requirement "$here/$name.txt"
  cp "$here/$name.txt" "$mark"
}
install lerobot
install openpi
HF_HUB_OFFLINE=1 "$target/lerobot/bin/python" -c 'from lerobot.policies.pi05.modeling_pi05 import PI05Policy'
HF_HUB_OFFLINE=1 JAX_PLATFORMS=cpu "$target/openpi/bin/python" -c 'from openpi.models_pytorch.pi0_pytorch import PI0Pytorch; from openpi.policies import policy'
echo "$target"
