# How what bench/gpu.sh needs gets to a host without a network. To be read by it.
# shellcheck shell=bash disable=SC2034,SC2154

# What a host without a network needs, in pieces: an archive of xz, cut.
pack() {
  local library files=(dist/tendon dist/models bench/gpu.sh bench/gpu bench/models models test/vectors/publishers .commit .gpu/root)
  [ -x dist/tendon ] || run npm run build
  run cargo test --config native/.cargo/config.toml --manifest-path native/Cargo.toml --release --locked --test kernels --no-run
  run sh -c 'mkdir -p .gpu; git rev-parse --short HEAD >.commit; pwd >.gpu/root'
  [ -f dist/gpu/kernels.fatbin ] && files+=(dist/gpu/kernels.fatbin "$(kernel_test)")
  run "${program[@]}" setup gpu --yes --dir "$work/ort" || true
  # CUDA and cuDNN are left out: such hosts have them in a Python, and they would be two thirds.
  for library in "$work"/ort/libonnxruntime*; do [ -f "$library" ] && files+=("$library"); done
  run sh -c 'rm -f .gpu/piece-*; tar -chf - "$@" | xz -T0 -6 | split -b 48M - .gpu/piece-; rm -f .commit' pack "${files[@]}"
  say PASS pack "$(find .gpu -name 'piece-*' 2>/dev/null | wc -l) pieces in .gpu"
}

unpack() {
  step unpack "the pieces of .gpu" sh -c 'cat .gpu/piece-* | tar -xJf -' || return
  [ -z "$dry" ] || return 0
  # The test of the kernels looks for their sources where it was built.
  local root
  root=$(cat .gpu/root)
  run mkdir -p "$(dirname "$root")" native/target/tmp
  [ -e "$root" ] || run ln -s "$PWD" "$root"
  echo "then: TENDON=dist/tendon TENDON_ORT_DIR=$PWD/$work/ort bench/gpu.sh STEP…"
}
