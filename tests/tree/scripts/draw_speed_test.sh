#!/bin/bash
# The README's picture is what scripts/bench/draw_speed makes of the measured numbers; a stale picture, another shape and inputs
# that cannot be used are told apart.      Usage: draw_speed_test.sh <root of the tree>
set -uo pipefail
draw=$1/scripts/bench/draw_speed
numbers=$1/docs/performance/h200.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  printf '%s\n' "$@"
  failures=$((failures + 1))
}
refuse() { # <what the one line must contain> <arguments...>
  local part=$1 output status
  shift
  output=$("$draw" "$@" 2>&1)
  status=$?
  [[ $status -eq 1 && $output == *"$part"* && $(wc -l <<<"$output") -eq 1 ]] ||
    fail "exit code $status, wanted 1 and one line with '$part':" "$output"
}

"$draw" --check "$numbers" "$1/docs/images/speed_h200.svg" || fail 'the picture is not current'
# A digit more in the first median of the file, whatever it is: a picture of other numbers.
sed -E '0,/"median_us": [0-9]/s//&0/' "$numbers" >"$work/slower.json"
cmp -s "$numbers" "$work/slower.json" && fail 'no number was changed'
refuse 'not what' --check "$work/slower.json" "$1/docs/images/speed_h200.svg"
"$draw" --shape 3072,4096 "$numbers" "$work/other.svg" || fail "--shape: exit code $?"
grep -q 'N = 3072, K = 4096' "$work/other.svg" || fail 'not the shape that was asked for'
refuse '--shape: 1,2' --shape 1,2 "$numbers" "$work/none.svg"
refuse 'must be JSON' <(echo '{') "$work/none.svg"
refuse 'must be its JSON' <(echo '{"program": "other"}') "$work/none.svg"
refuse 'must be complete' <(echo '{"program": "bench_cuda", "shapes": [{"n": 1}]}') "$work/none.svg"
[[ ! -e $work/none.svg ]] || fail 'a picture was written all the same'
echo "draw_speed_test: $failures failed"
[[ $failures -eq 0 ]]
