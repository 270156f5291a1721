# Step of bench/gpu.sh about imported checkpoints. To be read by it.
# shellcheck shell=bash disable=SC2154

# The largest difference of each stage from what the publisher's code computed, as the last `bundle verify` has said.
stages() {
  sed -nE 's/^  (OFF|   ) ([a-z][a-z ]*[a-z]) +(differ|[0-9.]+e[+-][0-9]+)( .*)?$/\2 \3/p' "$last" | paste -sd, - | sed 's/,/, /g'
}

# The small checkpoints of publishers, imported in each kind of arithmetic and compared with what their publishers' code computed in float32.
# A stage of f32 may differ by 0.0001. Rounding to f16 and bf16 moves a right stage by up to MEASURED_HALF.
imported() {
  local folder layout kind bundle words limit
  for folder in test/vectors/publishers/*/; do
    layout=$(basename "$folder")
    for kind in f32 f16 bf16; do
      if [ "$device" = cpu ] && [ $kind = bf16 ]; then say SKIP imported "$layout in bf16: no CPU computes it" && continue; fi
      bundle=$work/$layout-$kind words=() limit=()
      [ $kind = f32 ] || words=(--compute "$kind") limit=(--within "$MEASURED_HALF")
      if ! run "${program[@]}" bundle import "${folder}checkpoint" --robot "${folder}robot.toml" --golden "${folder}golden" \
        --id "lab/$layout:arm" --out "$bundle" "${words[@]}"; then
        say FAIL imported "$layout in $kind: $(why)"
      elif run "${program[@]}" bundle verify "$bundle" --device "$device" "${limit[@]}"; then
        say PASS imported "$layout in $kind: $(stages)"
      else say FAIL imported "$layout in $kind: $(stages); $(why)"; fi
    done
  done
}
