#!/usr/bin/env bash
# All that the GPU path must show on a host with an NVIDIA GPU, as commands: each step prints PASS, FAIL or SKIP with its figure and the
# next one goes on. What is asked for stands in the figures below.
#
#   bench/gpu.sh                        every step, in their order
#   bench/gpu.sh setup kernels          some of them; each is meant to take less than ten minutes
#   bench/gpu.sh --dry-run              prints the commands, runs none
#   bench/gpu.sh --small --device cpu   the small models on another device: does this script work? Steps of CUDA are skipped
#
# From a fresh host: git clone, Node 20, Rust, a C compiler, python3 with pip, the NVIDIA driver; it fetches from npm, crates and PyPI.
# A host without a network: `pack` makes pieces of at most 48 MiB where there is one, `unpack` puts them together there. The program is then
# the executable, and libraries that Python packages of that host have are found by LD_LIBRARY_PATH.
#
# Options: --device NAME (cuda:0), --out DIR (bench/results/gpu), --work DIR (dist/gpu-work; 30 GB for all), --chunks N (200),
# --python PYTHON (one that has CUDA's libraries), --tensorrt (fetch TensorRT too), --small, --dry-run. TENDON: the program, TENDON_ORT_DIR as always.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

ASKED_P50_MS=20 ASKED_P99_MS=22 ASKED_BATCH8_MS=80 ASKED_HOST_MS=0.3 ASKED_HALF=0.01
MEASURED_BF16=0.2 MEASURED_HALF=0.1
STEPS=(setup libraries doctor kernels sanitizer parity own tensorrt half imported build-bf16 build-f16 bench-bf16 bench-f16
  bench-own graph two-replicas lost stop small gr00t molmoact2 dreamzero)
device=cuda:0 out=bench/results/gpu work=dist/gpu-work chunks=200 python=python3 tensorrt="" small="" dry=""
passed=0 failed=0 skipped=0

usage() {
  sed -n '2,16s/^# \{0,1\}//p' "$0"
  echo "Steps: ${STEPS[*]}; by themselves: pack, unpack"
}

chosen=()
while [ $# -gt 0 ]; do
  case $1 in
  --device) device=${2:?a device} && shift ;;
  --out) out=${2:?a folder} && shift ;;
  --work) work=${2:?a folder} && shift ;;
  --chunks) chunks=${2:?a number} && shift ;;
  --python) python=${2:?a Python} && shift ;;
  --tensorrt) tensorrt=--tensorrt ;;
  --small) small=yes ;;
  --dry-run) dry=yes ;;
  -h | --help) usage && exit 0 ;;
  -*) echo "bench/gpu.sh: unknown option $1" >&2 && exit 2 ;;
  *) chosen+=("$1") ;;
  esac
  shift
done
[ ${#chosen[@]} -gt 0 ] || chosen=("${STEPS[@]}")
for step in "${chosen[@]}"; do
  [[ " ${STEPS[*]} pack unpack " == *" $step "* ]] && continue
  echo "bench/gpu.sh: unknown step $step; there are: ${STEPS[*]}" >&2 && exit 2
done

nvidia=""
[[ $device =~ ^(cuda|tensorrt):[0-9]+$ ]] && nvidia=yes
number=${device##*:}
# CUDA then numbers cards as nvidia-smi does, so that power and memory are of the card that is measured.
export CUDA_DEVICE_ORDER=${CUDA_DEVICE_ORDER:-PCI_BUS_ID}
if [ -n "${TENDON:-}" ]; then
  program=("$TENDON")
elif [ -x node_modules/.bin/bun ] || [ ! -x dist/tendon ]; then
  program=(node_modules/.bin/bun src/main.ts)
else
  program=(dist/tendon)
fi
# CUDA and cuDNN of a Python that has them: the loader does not look there by itself.
if [ -n "$nvidia" ] && site=$("$python" -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null); then
  for folder in "$site"/*/lib; do LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder; done
  export LD_LIBRARY_PATH
fi
[ -n "$dry" ] || mkdir -p "$out" "$work"
log=$work/log.txt last=$work/last.txt

card() {
  local said="" visible
  IFS=, read -ra visible <<<"${CUDA_VISIBLE_DEVICES:-}"
  [ -z "$nvidia" ] || said=$(nvidia-smi --id="${visible[number]:-$number}" --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
  echo "${said:-none}"
}
machine="$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, GPU $(card)"
# A tree that `pack` made carries its commit in .commit, wherever it was unpacked.
commit=$(cat .commit 2>/dev/null || git rev-parse --short HEAD 2>/dev/null || echo unknown)

# shellcheck source=bench/gpu/verdicts.sh
. bench/gpu/verdicts.sh
# shellcheck source=bench/gpu/own.sh
. bench/gpu/own.sh
# shellcheck source=bench/gpu/imported.sh
. bench/gpu/imported.sh
# shellcheck source=bench/gpu/carry.sh
. bench/gpu/carry.sh

needs_nvidia() { [ -n "$nvidia" ] || { say SKIP "$1" "$device is no NVIDIA device" && return 1; }; }

setup() {
  [ "${program[0]}" = node_modules/.bin/bun ] || { say SKIP setup "the program is ${program[0]}" && return; }
  # The CUDA compiler of PyPI, where no other is: the kernels of native/cuda are built with it.
  if [ -n "$nvidia" ] && ! command -v nvcc >/dev/null; then run node src/setup/cuda-compiler.mjs install || true; fi
  step setup "packages, native library, bundles" npm run setup
}

libraries() {
  needs_nvidia libraries || return
  if [ -n "${TENDON_ORT_DIR:-}" ]; then say SKIP libraries "TENDON_ORT_DIR is $TENDON_ORT_DIR"; else
    # shellcheck disable=SC2086 # one word or none
    step libraries "ONNX Runtime and CUDA of PyPI" "${program[@]}" setup gpu --yes $tensorrt
  fi
}

doctor() {
  run "${program[@]}" doctor || true
  [ -z "$dry" ] || return 0
  if [ "$device" = cpu ]; then
    say SKIP doctor "nothing of it is needed for $device"
  elif grep -q "$device runs a graph" "$last"; then
    say PASS doctor "$device runs a graph"
  else say FAIL doctor "$(grep -m 1 "${device%%:*}" "$last" | cut -c1-160)"; fi
}

# The test of the kernels: of cargo, or the one that `pack` has brought.
kernel_test() {
  find native/target/release/deps -maxdepth 1 -name 'kernels-*' -type f -perm -u+x -printf '%T@ %p\n' 2>/dev/null |
    sort -rn | head -n 1 | cut -d' ' -f2-
}

# On a GPU with the device code that setup made; elsewhere the same tests on the CPU's build of the kernels.
kernel_words() { [ -z "$nvidia" ] || printf 'gpu:%s/dist/gpu/kernels.fatbin' "$PWD"; }

kernels() {
  local words command
  words=$(kernel_words) command=("$(kernel_test)")
  if [ -n "$nvidia" ] && [ -z "$dry" ] && [ ! -f dist/gpu/kernels.fatbin ]; then
    say FAIL kernels "no dist/gpu/kernels.fatbin: setup makes it where nvcc is" && return
  fi
  if command -v cargo >/dev/null; then
    command=(cargo test --config native/.cargo/config.toml --manifest-path native/Cargo.toml --release --locked --test kernels --)
  elif [ -z "${command[0]}" ]; then
    say SKIP kernels "no cargo, and no test that was carried along" && return
  fi
  # shellcheck disable=SC2086 # no word on a CPU
  step kernels "native/cuda against the engine's own code" "${command[@]}" $words || return
  if [ -z "$dry" ] && grep -q ' [1-9][0-9]* ignored' "$last"; then say FAIL kernels "some were skipped: $(why)"; fi
}

sanitizer() {
  needs_nvidia sanitizer || return
  local test tool
  test=$(kernel_test)
  if ! command -v compute-sanitizer >/dev/null && [ -z "$dry" ]; then
    say SKIP sanitizer "no compute-sanitizer on the PATH: cuda-sanitizer-MAJOR-MINOR of NVIDIA's apt repository brings it" && return
  fi
  if [ -z "$test$dry" ]; then say SKIP sanitizer "no test of the kernels is built" && return; fi
  for tool in memcheck racecheck initcheck synccheck; do
    step sanitizer "$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 "${test:-native/target/release/deps/kernels-HASH}" "$(kernel_words)"
  done
}

# The largest of what the last `bundle verify` has said.
difference() { sed -n 's/^  parity vector [0-9]*: //p' "$last" | sort -g | tail -n 1; }

# verify STEP BUNDLE DEVICE word…: the bundle's parity vectors there, with the largest difference.
verify() {
  local name=$1 bundle=$2 where=$3
  shift 3
  if ! run "${program[@]}" bundle verify "$bundle" --device "$where" "$@"; then say FAIL "$name" "$(basename "$bundle") on $where: $(why)"; elif [ -z "$dry" ]; then
    say PASS "$name" "$(basename "$bundle") on $where: rows differ by $(difference)${*:+, $*}"
  fi
}

parity() { for bundle in dist/models/*/; do verify parity "${bundle%/}" "$device"; done; }

# Whether TensorRT's own libraries and its provider are there; PyPI does not have the former.
has_tensorrt() {
  run "${program[@]}" doctor || true
  [ -n "$dry" ] || ! grep -Eq '^[a-z]* *tensorrt .*(libnvinfer|is not beside)' "$last"
}

tensorrt() {
  needs_nvidia tensorrt || return
  if ! has_tensorrt; then say SKIP tensorrt "no TensorRT: tendon setup gpu --tensorrt brings it" && return; fi
  for bundle in dist/models/*/; do verify tensorrt "${bundle%/}" "tensorrt:$number"; done
  local built
  built=$(engines)
  for bundle in dist/models/*/; do verify tensorrt "${bundle%/}" "tensorrt:$number"; done
  [ -n "$dry" ] && return
  if [ "$built" -gt 0 ] && [ "$(engines)" = "$built" ]; then say PASS tensorrt "$built engines, each built once for all variants"; else
    say FAIL tensorrt "$built engines at first, then $(engines): one was built again"
  fi
}

# How many engines of TensorRT are kept.
engines() { find "${XDG_CACHE_HOME:-$HOME/.cache}/tendon/engines" -name '*.engine' 2>/dev/null | wc -l; }

# SIGTERM while models load: the service ends in order, with 0, before it would be killed.
stop() {
  step stop "SIGTERM during a load ends within 5 s" env TENDON_OPS_ADDR=127.0.0.1:0 timeout --preserve-status --kill-after=5 2 \
    "${program[@]}" serve --dev --port 0 --models dist/models --data "$work/stop"
}

# The bound on rows in the manifest of a bundle.
tolerance() {
  if [ -n "$dry" ]; then echo "TOLERANCE($1)"; else sed -n 's/.*"tolerance": *\([0-9.e-]*\).*/\1/p' "$1/manifest.json" | head -n 1; fi
}

# Half precision: bundles that compute so on the device, and what TensorRT makes of f32. f16 is held to what is asked for. Rounding to
# bf16 after every operator moves rows by more, so bf16 is held to the tolerance of the model's bf16 bundle, by TensorRT too.
half() {
  local model name by_tensorrt=""
  if [ -n "$nvidia" ]; then if has_tensorrt; then by_tensorrt=yes; else say SKIP half "by TensorRT: there is none"; fi; fi
  for model in models/*/; do
    name=$(basename "$model")
    built f16 "$model" "$work/$name-f16" half && verify half "$work/$name-f16" "$device" --within "$ASKED_HALF"
    [ -z "$by_tensorrt" ] || verify half "dist/models/$name" "tensorrt:$number" --gpu precision=f16 --within "$ASKED_HALF"
    built bf16 "$model" "$work/$name-bf16" half || continue
    verify half "$work/$name-bf16" "$device"
    [ -z "$by_tensorrt" ] || verify half "dist/models/$name" "tensorrt:$number" --gpu precision=bf16 --within "$(tolerance "$work/$name-bf16")"
  done
  needs_nvidia half
}

# built KIND MODEL OUT STEP: builds the bundle that computes in KIND unless it is there; SKIP where the model has no vectors of it.
built() {
  if [ -f "$3/manifest.json" ]; then return; fi
  if run "${program[@]}" bundle build "$2" --compute "$1" --out "$3"; then return; fi
  if grep -q 'tolerance; build this model\|cannot be read' "$last"; then
    say SKIP "$4" "$(basename "$2") has no rows for $1"
  else say FAIL "$4" "$(basename "$2"): $(why)"; fi
  return 1
}

# The model of the figures that are asked for; a small one shows that this script works.
full=bench/models/pi0.5
# The tolerance of its bf16 rows is assumed (they differ by 0.0097 on an H200). What differs by more is measured all the same, up to this
# bound, and the difference is judged by itself.
bound_bf16=(--within "$MEASURED_BF16")
[ -z "$small" ] || { full=models/pi0.5-yam && bound_bf16=(); }
tag=$(basename "$full")

build() {
  local from=$SECONDS
  built "$1" "$full" "$work/$tag-$1" "build-$1" || return
  [ -n "$dry" ] || say PASS "build-$1" "$(du -sm "$work/$tag-$1" | cut -f1) MiB, $((SECONDS - from)) s"
}

# measure STEP BUNDLE NAME KEYS word…: bench gpu, its report in --out.
measure() {
  local words=("${@:5}") file="$out/$3-${device//:/-}"
  [ -z "$4" ] || words+=(--gpu "$4")
  step "$1" "$3: $file.json" "${program[@]}" bench gpu --device "$device" --models "$2" --chunks "$chunks" "${words[@]}" \
    --json "$file.json"
}

bench() {
  local name=bench-$1 file="$out/$tag-$1-${device//:/-}.json" keys="" frames_when bundle="$work/$tag-$1" bound=()
  [ "$1" != bf16 ] || bound=("${bound_bf16[@]}")
  built "$1" "$full" "$bundle" "$name" || return
  choose_keys "$bundle" "${bound[@]}"
  measure "$name" "$bundle" "$tag-$1" "$keys" "${bound[@]}" || return
  judge "$name" "largest difference of rows" "$file" parity 1 difference_max "$(tolerance "$bundle")"
  # `with it` includes decoding in the time. `before` sends the frames ahead, as cameras do.
  for frames_when in "with it" before; do
    judge "$name" "socket p50 in ms, frames $frames_when" "$file" "socket frames $frames_when" 1 p50_ms $ASKED_P50_MS
    judge "$name" "socket p99 in ms, frames $frames_when" "$file" "socket frames $frames_when" 1 p99_ms $ASKED_P99_MS
  done
  judge "$name" "batch 8 in ms" "$file" model 8 p50_ms $ASKED_BATCH8_MS
  judge "$name" "allocations a chunk" "$file" model 1 allocations_per_chunk 0
  # The figure uses device times if there are any. Waits inside an inference count as device time. A captured graph is one launch.
  judge "$name" "host work a chunk in ms" "$file" host 1 p50_ms $ASKED_HOST_MS
}

# choose_keys BUNDLE word…: keys of [gpu] to measure it with, in $keys.
choose_keys() {
  keys=""
  [ -n "$nvidia" ] || return 0
  if captured "$@"; then keys=cuda_graph=true; fi
}

# captured BUNDLE word…: whether it runs there with its kernels captured as one graph, and its rows are right.
captured() {
  run "${program[@]}" bundle verify "$1" --device "$device" --gpu cuda_graph=true "${@:2}" && { [ -n "$dry" ] || grep -q 'as one graph, captured' "$last"; }
}

graph() {
  needs_nvidia graph || return
  built bf16 "$full" "$work/$tag-bf16" graph || return
  if captured "$work/$tag-bf16" "${bound_bf16[@]}"; then
    say PASS graph "CUDA graph on, rows differ by $(difference)"
    # Each replica captures for itself, and both share weights and the device.
    verify graph "$work/$tag-bf16" "$device" --gpu cuda_graph=true --replicas 2 "${bound_bf16[@]}"
  else say FAIL graph "$(why)"; fi
}

# Replicas of one GPU side by side, and captures beside loads. Where replicas wait for each other, two give no more chunks than one.
two_replicas() {
  local said wrong kind=bf16
  # No CPU computes in bf16.
  [ -z "$small" ] || kind=f16
  [ "${program[0]}" = node_modules/.bin/bun ] || { say SKIP two-replicas "the program is ${program[0]}" && return; }
  built $kind "$full" "$work/$tag-$kind" two-replicas || return
  run node_modules/.bin/bun bench/gpu/replicas.ts "$work/$tag-$kind" "$device" "$chunks" "$MEASURED_BF16" || { say FAIL two-replicas "$(why)" && return; }
  [ -z "$dry" ] || return 0
  said=$(python3 -c 'import json, sys
r = json.loads(open(sys.argv[1]).read().strip().splitlines()[-1])
print("%.1f and %.1f chunks a second by one and two replicas, %d of %d models captured" % (r["one"], r["two"], r["captured"], r["models"]))
sys.exit(r["two"] <= r["one"] or r["captured"] < r["models"])' "$last")
  wrong=$?
  if [ -z "$nvidia" ] || [ -n "$small" ]; then say SKIP two-replicas "$said; asked of the full size on a GPU: two give more, all captured"
  elif [ "$wrong" = 0 ]; then say PASS two-replicas "$said"; else say FAIL two-replicas "$said"; fi
}

# The loss of the device while a model of two replicas serves, one of them on the CPU.
lost() {
  local said
  needs_nvidia lost || return
  [ "${program[0]}" = node_modules/.bin/bun ] || { say SKIP lost "the program is ${program[0]}" && return; }
  run node_modules/.bin/bun bench/gpu/lost.ts dist/models/molmoact2-yam "$device" || { say FAIL lost "$(why)" && return; }
  [ -z "$dry" ] || return 0
  if said=$(python3 -c 'import json, sys
r = json.loads(open(sys.argv[1]).read().strip().splitlines()[-1])
causes = [one["cause"] for one in r["lost"]]
print("the driver answers %d; %d of %d chunks failed, then the CPU answered; lost: %s" % (r["code"], r["failed_after"], r["chunks"], causes))
sys.exit(causes != ["device_lost"] or r["failed_before"] > 0 or not 0 < r["failed_after"] < r["chunks"])' "$last"); then
    say PASS lost "$said"
  else say FAIL lost "$said"; fi
}

# The six reference bundles, a report.
small() { measure small dist/models small ""; }

# another STEP MODEL: a bundle of full size, built, measured and removed again, since each has 4 to 10 GB.
another() {
  local bundle="$work/$2"
  [ -z "$small" ] || { say SKIP "$1" "of full size" && return; }
  built bf16 "bench/models/$2" "$bundle" "$1" && measure "$1" "$bundle" "$2-bf16" ""
  run rm -rf "$bundle"
}

echo "bench/gpu.sh on $device: $machine; commit $commit${small:+; small models, whose figures are judged by nothing}${dry:+; dry run}"
for one in "${chosen[@]}"; do
  [ -n "$dry" ] && echo "$one"
  case $one in
  build-*) build "${one#build-}" ;;
  bench-bf16 | bench-f16) bench "${one#bench-}" ;;
  bench-own) bench_own ;;
  two-replicas) two_replicas ;;
  gr00t) another gr00t gr00t-n1.7 ;;
  molmoact2) another molmoact2 molmoact2 ;;
  dreamzero) another dreamzero dreamzero-5b ;;
  *) "$one" ;;
  esac
done
[ -n "$dry" ] && exit 0
echo "$passed passed, $failed failed, $skipped skipped; $out/steps.tsv, $log"
[ "$failed" = 0 ]
