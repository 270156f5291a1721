#!/usr/bin/env bash
# publishers.sh DIR: the publishers' own code in DIR, from PyPI, at the versions that the golden values were made with.
#
# DIR/lerobot/bin/python runs LeRobot 0.6.1, DIR/openpi/bin/python openpi (rlinf-openpi 0.1.1). openpi wants an older transformers and NumPy,
# so it has an environment with these alone and takes torch from LeRobot's. Both run without a network, on a CPU. It takes three to ten minutes
# and 6.5 GB, since PyPI's torch is built for CUDA and does not start without NVIDIA's libraries.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
target=${1:?usage: publishers.sh DIR}

# LeRobot wants Python 3.12 or newer, and its pinned NumPy has no build for those after 3.13.
found=""
for candidate in python3.12 python3.13 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[23]*/bin/python3 python3; do
  if "$candidate" -c 'import ensurepip, sys; sys.exit(not (3, 12) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
    found=$candidate
    break
  fi
done
if [ -z "$found" ]; then
  echo "error: no Python 3.12 or 3.13 with pip was found; LeRobot 0.6.1 needs one. Install it, or name its folder in PATH." >&2
  exit 1
fi

mkdir -p "$target"
target=$(cd "$target" && pwd)
# Each is whole only when its mark is there: a run that was ended begins anew.
install() {
  local name=$1 mark="$target/$1/complete"
  cmp -s "$here/$name.txt" "$mark" && return
  rm -rf "${target:?}/$name"
  "$found" -m venv "$target/$name"
  [ "$name" = lerobot ] || ls -d "$target"/lerobot/lib/python3*/site-packages > "$(echo "$target/$name"/lib/python3*/site-packages)/lerobot.pth"
  "$target/$name/bin/pip" install --quiet --no-cache-dir --no-deps --requirement "$here/$name.txt"
  cp "$here/$name.txt" "$mark"
}
install lerobot
install openpi
HF_HUB_OFFLINE=1 "$target/lerobot/bin/python" -c 'from lerobot.policies.pi05.modeling_pi05 import PI05Policy'
HF_HUB_OFFLINE=1 JAX_PLATFORMS=cpu "$target/openpi/bin/python" -c 'from openpi.models_pytorch.pi0_pytorch import PI0Pytorch; from openpi.policies import policy'
echo "$target"
