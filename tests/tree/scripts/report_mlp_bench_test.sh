#!/bin/bash
# Numbers of three points go in; the lines of the tables, the verdicts, the replaced part of a document and (with matplotlib)
# the plot must come out, unusable inputs must be refused in one line, and the kept page and the kept summary must be what
# the kept numbers give.
# Usage: report_mlp_bench_test.sh <root of the tree> <mlp_bench.json>
# shellcheck disable=SC2016  # Markdown has backquotes
set -uo pipefail
root=$1
numbers=$2
report=$root/scripts/report_mlp_bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  printf '%s\n' "$@"
  failures=$((failures + 1))
}
expect() { # <text> <what must be in it>
  [[ $1 == *"$2"* ]] || fail "not found: $2" "in: $1"
}
refuse() { # <exit code> <what the one line must contain> <arguments...>
  local code=$1 part=$2 output status
  shift 2
  output=$("$report" "$@" 2>&1 >/dev/null)
  status=$?
  if [[ $status -ne $code || $output != *"$part"* || $(wc -l <<<"$output") -ne 1 ]]; then
    fail "exit code $status, wanted $code and one line with '$part':" "$output"
  fi
}

text=$("$report" "$numbers") || fail "no Markdown: exit code $?"
flat=$(tr '\n' ' ' <<<"$text" | tr -s ' ') # prose is wrapped
expect "$text" '# NVIDIA H200: a whole gated MLP, 2026-11-23'
expect "$text" '](h200_mlp.svg)'
expect "$flat" 'SM clock while measuring 1500 to 1980 MHz, power 250 to 690 W; reasons for a lower clock: power cap.'
expect "$flat" 'Targets met: W4A16, unpacked weights: 0 of 1; W4A16, prepared weights: 1 of 2; W4A4, prepared weights: 1 of 1.'
expect "$text" '## (intermediate, hidden) = (1024, 512), 0.9 MB of packed weights'
expect "$text" '| 16 | 10.0 | 90 | 16.00 | 14.40 | – | 3 | 9.00 | 5.00 | 50.00 | 40.00 | 1 | 1.02 |'
expect "$text" '| 64 | – | – | 60.00 | – | – | 3 | – | – | 50.00 | – | 4 | 1.02 |'
expect "$text" '| 16 | skinny 8x32 + wgmma 16x32 | skinny 16x32 + skinny 16x16 | – | 1.60 | **0.40** | 1.44 | 0.36 | – | – | 0.36 |'
expect "$text" '| 64 | – | – | – | – | 1.20 | – | – | – | – | – |'
expect "$text" '| 1024 | – | – | – | – | – | – | **1.10** | – | 1.00 | 1.00 |'
expect "$flat" '- (intermediate, hidden) = (1024, 512), M = 16, `w4a4_prepared`: Failed: m: 16; must be something else'
long=$(grep -v '^|' <<<"$text" | grep -E '.{121}') && fail "prose beyond 120 columns: $long"
[[ $("$report" --print-name "$numbers") == h200_mlp ]] || fail 'the name is not h200_mlp'

summary=$("$report" "$numbers" --summary)
expect "$summary" '### NVIDIA H200: a whole gated MLP, 2026-11-23'
expect "$summary" '| M | 16 | 64 | 1024 |'
expect "$summary" '| (intermediate, hidden) = (1024, 512): W4A16, unpacked weights | 16.0 | 60.0 | – |'
expect "$summary" '| bf16, cuBLAS and a kernel that activates | 40.0 | 50.0 | – |'
expect "$summary" '| W4A16, unpacked weights, × bf16 | **0.40** | 1.20 | – |'
expect "$summary" '| W4A16, prepared weights, × bf16 | – | – | **1.10** |'

# Only what stands between the markers is replaced, and twice gives the same.
printf 'before\n<!-- gpu-table:begin h200_mlp -->\nold\n<!-- gpu-table:end h200_mlp -->\nafter\n' >"$work/document.md"
for _ in 1 2; do "$report" "$numbers" --document "$work/document.md" || fail "--document: exit code $?"; done
printf 'before\n<!-- gpu-table:begin h200_mlp -->\n%s\n<!-- gpu-table:end h200_mlp -->\nafter\n' "$summary" |
  diff - "$work/document.md" || fail 'the document is not as it should be'

echo 'no markers' >"$work/bare.md"
refuse 1 'must have one of each' "$numbers" --document "$work/bare.md"
[[ $(cat "$work/bare.md") == 'no markers' ]] || fail 'a refused document was changed'
echo '{"program": "mlp_bench"' >"$work/cut.json"
refuse 1 'must be JSON written by mlp_bench' "$work/cut.json"
refuse 1 'program moe_bench; must be mlp_bench' <(echo '{"program": "moe_bench"}')
refuse 1 'no points' <(echo '{"program": "mlp_bench", "shapes": []}')
refuse 1 'must be complete' <(echo '{"program": "mlp_bench", "shapes": [{"points": [{}]}]}')
refuse 1 'No such file' "$work/absent.json"

if python3 -c 'import matplotlib' 2>/dev/null; then
  for name in one two; do "$report" "$numbers" --plot "$work/$name.svg" >/dev/null || fail "--plot: exit code $?"; done
  cmp "$work/one.svg" "$work/two.svg" || fail 'the same numbers gave two plots'
  grep -q '<svg' "$work/one.svg" || fail 'no SVG'
else
  refuse 1 'needs it' "$numbers" --plot "$work/absent.svg"
fi

for kept in "$root"/docs/performance/*_mlp.json; do
  "$report" "$kept" | diff - "${kept%.json}.md" >"$work/diff" || fail "${kept%.json}.md is not what its numbers give:" "$(head -5 "$work/diff")"
  mkdir -p "$work/docs"
  cp "$root/docs/performance.md" "$work/docs/performance.md"
  ln -sfn "$root/docs/performance" "$work/docs/performance"
  "$report" "$kept" --document "$work/docs/performance.md" || fail "the summary of $kept: exit code $?"
  cmp -s "$root/docs/performance.md" "$work/docs/performance.md" || fail "the summary in docs/performance.md is not what $kept gives"
done
echo "report_mlp_bench_test: $failures failed"
[[ $failures -eq 0 ]]
