# Steps of bench/gpu.sh about what is to be tried there against the plain way: own kernels, fused attention. To be read by
# it.
# shellcheck shell=bash disable=SC2034,SC2154

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

# The bf16 bundle without own_kernels and with it, in one step: socket times side by side, and that they ran.
bench_own() {
  local name=bench-own bundle="$work/$tag-bf16" keys="" file="$out/$tag-own-${device//:/-}"
  needs_nvidia "$name" || return
  built bf16 "$full" "$bundle" "$name" || return
  choose_keys "$bundle" "${bound_bf16[@]}"
  measure "$name" "$bundle" "$tag-own-without" "$keys" "${bound_bf16[@]}" || return
  measure "$name" "$bundle" "$tag-own" "${keys:+$keys,}own_kernels=true" "${bound_bf16[@]}" || return
  [ -z "$dry" ] || return 0
  grep -Eq '"launched": *true' "$file.json" || { say FAIL "$name" "no kernel of ours ran: bundle verify --gpu own_kernels=true says why" && return; }
  compare "$name" "$file.json" "$out/$tag-own-without-${device//:/-}.json" own_kernels=true
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
