# Steps of bench/gpu.sh about what is to be tried there against the plain way: own kernels, frames on the device, fused attention, FP8. To be
# read by it.
# shellcheck shell=bash disable=SC2034,SC2154

turbo=node_modules/@julusian/jpeg-turbo/prebuilds/jpeg-turbo-linux-x64/libturbojpeg.so.0

# Of the JPEG files in --frames, of those beside the checkout, or of a bundle's drawn ones: paths, one a line.
pictures() {
  local folder
  for folder in ${frames:+"$frames"} ../shared/fixtures dist/models/molmoact2-yam/parity; do
    find "$folder" -maxdepth 1 -name '*.jpg' 2>/dev/null | sort | grep . && return
  done
}

# The GPU's own decoder beside libjpeg-turbo, and our whole way to a tensor: is it worth an option, and how far are its pixels off?
nvjpeg() {
  needs_nvidia nvjpeg || return
  local files peer code ours=native/target/release/decode_bench
  mapfile -t files < <(pictures)
  [ ${#files[@]} -gt 0 ] || files=("${frames:-FRAMES}/*.jpg")
  peer=("$python" bench/peers/nvjpeg.py --turbojpeg "$turbo" --device "$number" --json "$out/nvjpeg-${device//:/-}.json")
  run "${peer[@]}" "${files[@]}"
  code=$?
  # Only the library is missing: the version that the script names.
  if [ "$code" = 4 ] || [ -n "$dry" ]; then
    run "$python" -m pip install --quiet --no-deps --target "$work/nvjpeg" "$(sed -n 's/^PACKAGE = "\(.*\)"$/\1/p' bench/peers/nvjpeg.py)"
    run "${peer[@]}" --library "$work/nvjpeg" "${files[@]}"
    code=$?
  fi
  case $code in
  0) [ -n "$dry" ] || say PASS nvjpeg "$(sed -n 's/^nvjpeg: //p' "$last")" ;;
  3 | 4) say SKIP nvjpeg "$(why)" && return ;;
  *) say FAIL nvjpeg "$(why)" && return ;;
  esac
  if command -v cargo >/dev/null; then run cargo build --manifest-path native/Cargo.toml --release --locked --bin decode_bench; fi
  if ! run "$ours" "$turbo" "${files[@]}"; then say FAIL nvjpeg "decode_bench: $(why)"; elif [ -z "$dry" ]; then
    say PASS nvjpeg "a frame, one thread, us: $(sed -n 's/.*"decode_us":\([0-9.]*\).*"tensor_us":\([0-9.]*\).*/\1 decoded, \2 to its tensor/p' "$last" | paste -sd';')"
  fi
}

# Each version of each kernel against the card's own copy.
times() {
  needs_nvidia times || return
  local command words line
  words=$(kernel_words) command=("$(kernel_test)")
  [ -n "${command[0]}" ] || command=(cargo test --manifest-path native/Cargo.toml --release --locked --test kernels --)
  # shellcheck disable=SC2086 # one word
  if ! run "${command[@]}" $words time every_version_has_a_time; then say FAIL times "$(why)" && return; fi
  [ -z "$dry" ] || return 0
  while read -r line; do say PASS times "$line"; done < <(sed -n 's/^time //p' "$last")
}

# launched BUNDLE word…: whether our kernels move its latents and decode its chunks there, and its rows are right.
launched() {
  run "${program[@]}" bundle verify "$1" --device "$device" --gpu own_kernels=true "${@:2}" &&
    { [ -n "$dry" ] || grep -q "own kernels moved" "$last"; }
}

own() {
  needs_nvidia own || return
  local bundle
  for bundle in dist/models/*/; do
    if ! launched "${bundle%/}"; then say FAIL own "$(basename "$bundle"): $(why)"; elif [ -z "$dry" ]; then
      say PASS own "$(basename "$bundle"), own_kernels: rows differ by $(difference)"
    fi
  done
}

# beside WHAT KEY: the bf16 bundle without a key of [gpu] and with it, in one step: socket times side by side, and that it was in use.
beside() {
  local name=bench-$1 bundle="$work/$tag-bf16" keys="" folder file="$out/$tag-$1-${device//:/-}"
  needs_nvidia "$name" || return
  built bf16 "$full" "$bundle" "$name" || return
  choose_keys "$bundle" "${bound_bf16[@]}"
  # Where step nvjpeg has put it.
  for folder in "$work"/nvjpeg/nvidia/*/lib; do [ -d "$folder" ] && LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder; done
  export LD_LIBRARY_PATH
  measure "$name" "$bundle" "$tag-$1-without" "$keys" "${bound_bf16[@]}" || return
  measure "$name" "$bundle" "$tag-$1" "${keys:+$keys,}$2" "${bound_bf16[@]}" || return
  [ -z "$dry" ] || return 0
  case $1 in
  own) grep -Eq '"launched": *true' "$file.json" || { say FAIL "$name" "no kernel of ours ran: bundle verify --gpu own_kernels=true says why" && return; } ;;
  jpeg) grep -Eq '"nvjpeg": *true' "$file.json" || { say FAIL "$name" "nvJPEG was not used: $file.json says why" && return; } ;;
  esac
  compare "$name" "$file.json" "$out/$tag-$1-without-${device//:/-}.json" "$2"
}

# compare STEP FILE FILE WHAT: socket times of a report with it and of one without.
compare() {
  local when with without
  for when in "with it" before; do
    with=$(figure "$2" "socket frames $when" 1 p50_ms) without=$(figure "$3" "socket frames $when" 1 p50_ms)
    if [ -n "$with" ] && [ -n "$without" ]; then say PASS "$1" "socket p50 in ms, frames $when: $with, without $4 $without"; else
      say FAIL "$1" "socket p50, frames $when: the reports have no such figure"
    fi
  done
}

# Attention as ONNX's one operator: which of its kernels ONNX Runtime takes depends on the card. f16 is held to what is asked for, as in step half.
fused() {
  local model name compute words
  for model in models/*/; do
    name=$(basename "$model")
    for compute in f16 bf16; do
      words=()
      [ $compute = bf16 ] || words=(--within "$ASKED_HALF")
      built $compute "$model" "$work/$name-fused-$compute" fused --attention fused && verify fused "$work/$name-fused-$compute" "$device" "${words[@]}"
    done
  done
  needs_nvidia fused
}

# The bf16 bundle with products and with the operator, in one step.
bench_fused() {
  local name=bench-fused keys="" plain="$work/$tag-bf16" fused="$work/$tag-fused-bf16" first
  needs_nvidia "$name" || return
  built bf16 "$full" "$plain" "$name" && built bf16 "$full" "$fused" "$name" --attention fused || return
  choose_keys "$plain" "${bound_bf16[@]}"
  first=$keys
  choose_keys "$fused" "${bound_bf16[@]}"
  # Keys that both of them can have.
  [ "$keys" = "$first" ] || keys=""
  measure "$name" "$plain" "$tag-attention-plain" "$keys" "${bound_bf16[@]}" &&
    measure "$name" "$fused" "$tag-attention-fused" "$keys" "${bound_bf16[@]}" || return
  run rm -rf "$fused"
  [ -z "$dry" ] || return 0
  compare "$name" "$out/$tag-attention-fused-${device//:/-}.json" "$out/$tag-attention-plain-${device//:/-}.json" "fused attention, keys ${keys:-none}"
}

# FP8: matrices of one byte, which TensorRT multiplies so. Held to the tolerance of each bundle.
fp8() {
  local model name
  for model in models/*/; do
    name=$(basename "$model")
    built_fp8 "$model" "$work/$name-fp8" fp8 || continue
    if [ -z "$nvidia" ]; then verify fp8 "$work/$name-fp8" "$device"; else verify fp8 "$work/$name-fp8" "tensorrt:$number"; fi
  done
}

# built_fp8 MODEL OUT STEP
built_fp8() {
  [ -f "$2/manifest.json" ] || run "${program[@]}" bundle build "$1" --compute f16 --weights fp8 --out "$2" ||
    { say FAIL "$3" "$(basename "$1"): $(why)" && return 1; }
}

bench_fp8() {
  needs_nvidia bench-fp8 || return
  local bundle="$work/$tag-fp8" device="tensorrt:$number"
  built_fp8 "$full" "$bundle" bench-fp8 && measure bench-fp8 "$bundle" "$tag-fp8" cuda_graph=true
}
