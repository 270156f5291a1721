# Steps of bench/gpu.sh about own kernels, against the plain way. To be read by it.
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
  local bundle="$work/$tag-bf16" keys=""
  needs_nvidia bench-own && built bf16 "$full" "$bundle" bench-own || return
  choose_keys "$bundle" "${bound_bf16[@]}"
  beside bench-own own "$bundle" "${keys:+$keys,}own_kernels=true" "$bundle" "$keys" own_kernels=true || return
  [ -n "$dry" ] || grep -Eq '"kernels": *true' "$out/$tag-own-${device//:/-}.json" ||
    say FAIL bench-own "no kernel of ours ran: bundle verify --gpu own_kernels=true says why"
}

# beside STEP NAME BUNDLE KEYS PLAIN KEYS WHAT: socket times of a bundle with it and of the plain one, which is measured first.
beside() {
  local step=$1 report="$out/$tag-$2" when with without
  measure "$step" "$5" "$tag-$2-without" "$6" "${bound_bf16[@]}" && measure "$step" "$3" "$tag-$2" "$4" "${bound_bf16[@]}" || return
  [ -z "$dry" ] || return 0
  for when in "with it" before; do
    with=$(figure "$report-${device//:/-}.json" "socket frames $when" 1 p50_ms)
    without=$(figure "$report-without-${device//:/-}.json" "socket frames $when" 1 p50_ms)
    if [ -n "$with" ] && [ -n "$without" ]; then say PASS "$step" "socket p50 in ms, frames $when: $with, without $7 $without"; else
      say FAIL "$step" "socket p50, frames $when: the reports have no such figure"
    fi
  done
}
