#!/bin/bash
# Numbers of two points and of one group problem go in; the lines of the tables, the verdicts, the replaced part of a
# document, the table of a sweep and (with matplotlib) the plot must come out, unusable inputs must be refused in one line,
# and the kept page and the kept summary must be what the kept numbers give.
# Usage: report_moe_bench_test.sh <root of the tree> <moe_bench.json>
# shellcheck disable=SC2016  # Markdown has backquotes
set -uo pipefail
root=$1
numbers=$2
report=$root/scripts/report_moe_bench
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
expect "$text" '# NVIDIA H200: groups of experts, 2026-11-23'
expect "$text" '](h200_experts.svg)'
expect "$flat" 'SM clock while measuring 1500 to 1980 MHz, power 250 to 690 W; reasons for a lower clock: power cap.'
expect "$flat" 'Targets met: A NVFP4, unpacked weights: 1 of 3; A NVFP4, prepared weights: 2 of 3; A bf16, prepared weights: 0 of 2; groups: 1 of 2.'
expect "$text" '## Mixtral-8x7B: (N, K) = (14336, 4096), 8 experts, top 2'
expect "$text" '| 8 | 2 | 2 | 1 | 132.0 | 30.0 | 4400 | 45.00 | 40.00 | – | 50.00 | 120.0 | 100.0 | 99.00 | 1.02 |'
expect "$text" '| 1024 skewed | 2048 | 8 | 900 | 528.0 | – | – | 900.0 | 1100.0 | – | – | 1000.0 | – | – | 1.20 |'
expect "$text" '| 8 | skinny 8x32 | skinny 8x16 | **1.50** | **0.45** | 1.33 | 0.40 | – | – | **1.67** | **0.50** |'
expect "$text" '| 1024 skewed | wgmma 256x64 | wgmma 256x64 | – | 0.90 | – | **1.10** | – | – | – | – |'
expect "$text" '| 4096, 1536 | 128, 384 | wgmma 128x64 | 27.00 | 36.00 | 0.75 | 40.00 | 32.00 | **1.25** | – | – | – |'
expect "$text" '- Mixtral-8x7B, 8 tokens, `bf16`: Failed: a: 1; must be something else'
sed 's/"tokens": 8,/"tokens": 4,/' "$numbers" >"$work/fewer.json" # below 8 tokens plain reads have no target
expect "$("$report" "$work/fewer.json")" '| 4 | skinny 8x32 | skinny 8x16 | 1.50 | **0.45** | 1.33 | 0.40 | – | – | 1.67 | **0.50** |'
long=$(grep -v '^|' <<<"$text" | grep -E '.{121}') && fail "prose beyond 120 columns: $long"
[[ $("$report" --print-name "$numbers") == h200_experts ]] || fail 'the name is not h200_experts'

summary=$("$report" "$numbers" --summary)
expect "$summary" '### NVIDIA H200: groups of experts, 2026-11-23'
expect "$summary" '| tokens | 8 | 1024 |'
expect "$summary" '| Mixtral-8x7B: (N, K) = (14336, 4096), 8 experts, top 2 | 40.0 | – |'
expect "$summary" '| × plain read | 1.33 | – |'
expect "$summary" '| × bf16 | 0.40 | – |'
expect "$summary" '| 4096, 1536: 128, 384 | 27.0 | 36.0 | 0.75 | 40.0 | 32.0 | **1.25** |'

# Only what stands between the markers is replaced, and twice gives the same.
printf 'before\n<!-- gpu-table:begin h200_experts -->\nold\n<!-- gpu-table:end h200_experts -->\nafter\n' >"$work/document.md"
for _ in 1 2; do "$report" "$numbers" --document "$work/document.md" || fail "--document: exit code $?"; done
printf 'before\n<!-- gpu-table:begin h200_experts -->\n%s\n<!-- gpu-table:end h200_experts -->\nafter\n' "$summary" |
  diff - "$work/document.md" || fail 'the document is not as it should be'

# A sweep: what was asked for stands behind the variant's name.
sed -e 's/"sweep": false/"sweep": true/' -e 's/"nvfp4_prepared": {/"nvfp4 kernel=wgmma,tile_m=128": {/' "$numbers" >"$work/sweep.json"
swept=$("$report" "$work/sweep.json") || fail "no table of a sweep: exit code $?"
expect "$swept" 'A NVFP4, unpacked weights:'
expect "$swept" '| Mixtral-8x7B | 8 | 0.2 | 1.0 | skinny 8x32 | 45.0 | skinny 8x16 | 40.0 | 1.12 |'
expect "$swept" '| groups (4096, 1536) | – | 256.0 | 256.0 | wgmma 128x64 | 27.0 | wgmma 128x64 | 27.0 | 1.00 |'
refuse 1 'numbers of --sweep' "$work/sweep.json" --summary

echo 'no markers' >"$work/bare.md"
refuse 1 'must have one of each' "$numbers" --document "$work/bare.md"
[[ $(cat "$work/bare.md") == 'no markers' ]] || fail 'a refused document was changed'
echo '{"program": "moe_bench"' >"$work/cut.json"
refuse 1 'must be JSON written by moe_bench' "$work/cut.json"
refuse 1 'program other; must be moe_bench' <(echo '{"program": "other"}')
refuse 1 'no points' <(echo '{"program": "moe_bench", "models": [], "groups": []}')
refuse 1 'must be complete' <(echo '{"program": "moe_bench", "models": [{"points": [{}]}], "groups": []}')
refuse 1 'No such file' "$work/absent.json"

if python3 -c 'import matplotlib' 2>/dev/null; then
  for name in one two; do "$report" "$numbers" --plot "$work/$name.svg" >/dev/null || fail "--plot: exit code $?"; done
  cmp "$work/one.svg" "$work/two.svg" || fail 'the same numbers gave two plots'
  grep -q '<svg' "$work/one.svg" || fail 'no SVG'
else
  refuse 1 'needs it' "$numbers" --plot "$work/absent.svg"
fi

for kept in "$root"/docs/performance/*_experts.json; do
  "$report" "$kept" | diff - "${kept%.json}.md" >"$work/diff" || fail "${kept%.json}.md is not what its numbers give:" "$(head -5 "$work/diff")"
  mkdir -p "$work/docs"
  cp "$root/docs/performance.md" "$work/docs/performance.md"
  ln -sfn "$root/docs/performance" "$work/docs/performance"
  "$report" "$kept" --document "$work/docs/performance.md" || fail "the summary of $kept: exit code $?"
  cmp -s "$root/docs/performance.md" "$work/docs/performance.md" || fail "the summary in docs/performance.md is not what $kept gives"
done
echo "report_moe_bench_test: $failures failed"
[[ $failures -eq 0 ]]
