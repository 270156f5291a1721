# How bench/gpu.sh runs commands and judges their figures. To be read by it: it says what the device is, and counts.
# shellcheck shell=bash disable=SC2034,SC2154

# say VERDICT step figure: one line here and one of the table in --out.
say() {
  [ -z "$dry" ] || return 0
  printf '%s %-12s %s\n' "$1" "$2" "$3"
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$(date -u +%FT%TZ)" "$commit" "$machine" "$device" "$2" "$1" "$3" >>"$out/steps.tsv"
  case $1 in PASS) passed=$((passed + 1)) ;; FAIL) failed=$((failed + 1)) ;; SKIP) skipped=$((skipped + 1)) ;; esac
}

# run COMMAND…: its output goes to the log; false where it fails, and in a dry run nothing but the command is printed.
run() {
  [ -z "$dry" ] || { printf '  %s\n' "$*" && return; }
  echo "+ $*" >>"$log"
  "$@" >"$last" 2>&1
  local code=$?
  cat "$last" >>"$log"
  return $code
}

# What CUDA has refused, or else the last line that the last command said and that is no stack: behind an abort that would be a link.
why() { { grep -o -m 1 'CUDA failure.*' "$last" || grep -v '^$\|^    at ' "$last"; } 2>/dev/null | tail -n 1 | cut -c1-160; }

# step NAME FIGURE COMMAND…: PASS with the figure or FAIL with the last words.
step() {
  local name=$1 figure=$2 from=$SECONDS
  shift 2
  if run "$@"; then say PASS "$name" "$figure, $((SECONDS - from)) s"; else
    say FAIL "$name" "$(why)"
    return 1
  fi
}

# figure FILE part batch figure: its value in a report of `bench gpu --json`.
figure() {
  python3 -c 'import json, sys
path, *wanted = sys.argv[1:]
figures = json.load(open(path))["measurements"][0]["figures"]
print(*[f["value"] for f in figures if [f["part"], str(f["batch"]), f["figure"]] == wanted and f["value"] is not None][:1])' "$@"
}

# judge STEP what FILE part batch figure most: the figure against the most that is asked for.
judge() {
  local name=$1 what=$2 most=$7 value
  [ -z "$dry" ] || { echo "  (then: $what at most $most)" && return; }
  value=$(figure "$3" "$4" "$5" "$6" 2>/dev/null)
  if [ -z "$value" ] && [ "$4" = host ]; then
    say SKIP "$name" "$what: not measured, the stations are timed by the host's clock; asked: at most $most"
  elif [ -z "$value" ] && [ -n "$nvidia" ] && [ -z "$small" ]; then
    say FAIL "$name" "$what: the report has no such figure"
  elif [ -z "$value" ]; then
    say SKIP "$name" "$what: this device or report has no such figure"
  elif [ -z "$nvidia" ] || [ -n "$small" ]; then
    say SKIP "$name" "$what is $value; asked of the full size on a GPU: at most $most"
  elif awk -v value="$value" -v most="$most" 'BEGIN { exit !(value <= most) }'; then
    say PASS "$name" "$what is $value, at most $most"
  else
    say FAIL "$name" "$what is $value, at most $most"
  fi
}
