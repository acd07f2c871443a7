#!/bin/bash
# Numbers of two points go in; the lines of the tables, the verdicts, the replaced part of a document and (with matplotlib)
# the plot must come out, and unusable inputs must be refused in one line.
# Usage: report_gpu_bench_test.sh <scripts/report_gpu_bench> <gpu_bench.json>
# shellcheck disable=SC2016  # Markdown has backquotes
set -uo pipefail
report=$1
numbers=$2
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

cat >"$work/triton.json" <<'JSON'
{"program": "triton_dual_gemm", "date": "2026-11-21T18:00:00Z", "device": "NVIDIA H200", "torch": "2.11", "triton": "3.6.0",
 "shapes": [{"n": 4096, "k": 7168, "points": [{"m": 1, "a": "e2m1", "median_us": 22.5}, {"m": 4096, "a": "e2m1", "error": "none ran"}]}]}
JSON
text=$("$report" "$numbers" --triton "$work/triton.json") || fail "no Markdown: exit code $?"
flat=$(tr '\n' ' ' <<<"$text" | tr -s ' ') # prose is wrapped
expect "$text" '# NVIDIA H200, 2026-11-21'
expect "$text" '](h200.svg)'
expect "$flat" 'SM clock while measuring 1500 to 1980 MHz, power 250 to 690 W; reasons for a lower clock: power cap.'
expect "$flat" '12 to 16 algorithms timed'
expect "$text" '3 of 7 targets met; with prepared weights 2 of 2.'
expect "$text" '| 1 | `cuda_sm90a_fused_t8` | 11.00 | 1.03 | 11 | 32.00 stacked | 0.34 | 0.36 met, floor × 1.25 met | 19.00 | 8.80 | 1.25 | 12.00 | 0.38 | 0.36 **not met**, floor × 1.25 **not met** | 22.5 | – |'
expect "$text" '| 4096 | `cuda_sm90a_fused_t8` | 690.0 | 1.03 | 697 | 680.0 two GEMMs | 1.01 | 1.00 **not met** | – | 8.90 | 78.41 | – | – | – | – | 720.0 |'
expect "$text" '| 1 | `cuda_sm90a_fused_t8_prepared` | 10.45 | 1.02 | 11 | 0.95 | 0.33 | 0.36 met, floor × 1.25 met | 1.19 | – | – | – | – |'
expect "$text" '| 4096 | – | – | – | – | – | – | – | – | – | – | – | – |'
expect "$flat" '- (4096, 7168), M = 1, `fused` on f16, prepared weights: prepared weights: 33030144; out of memory'
expect "$flat" '- (4096, 7168), M = 4096, `fused` on f16: workspace: 1; must be more'
expect "$flat" '- (4096, 7168), M = 4096, `cached` on e2m1, prepared weights: **wrong result** (share of the bound inf, worst tile 0.0005)'
long=$(grep -v '^|' <<<"$text" | grep -E '.{121}') && fail "prose beyond 120 columns: $long"
without=$("$report" "$numbers")
sed '/"prepared": true, .*fused_t8_prepared/d; s/\("a": "f16", "prepared": \)true/\1false/' "$numbers" >"$work/unprepared.json"
[[ $("$report" "$work/unprepared.json") != *'Prepared weights:'* ]] || fail 'a table without numbers: prepared weights'
[[ $without != *Triton* ]] || fail 'a column without numbers: Triton'
[[ $("$report" --print-name "$numbers") == h200 ]] || fail 'the short name is not h200'

summary=$("$report" "$numbers" --summary)
expect "$summary" '### NVIDIA H200, 2026-11-21'
expect "$summary" '| M | 1 | 4096 |'
expect "$summary" '| `fused`, unpacked weights | 11.0 | 690 |'
expect "$summary" '| `fused`, prepared weights | 10.4 | – |'
expect "$summary" '| `fused`, unpacked, over cuBLASLt fp16 | 0.34 | 1.01 |'
expect "$("$report" "$numbers" --summary --triton "$work/triton.json")" '| a Triton kernel of the same kind | 22.5 | – |'

# Only what stands between the markers is replaced, and twice gives the same.
printf 'before\n<!-- gpu-table:begin h200 -->\nold\n<!-- gpu-table:end h200 -->\nafter\n' >"$work/document.md"
for _ in 1 2; do "$report" "$numbers" --document "$work/document.md" || fail "--document: exit code $?"; done
printf 'before\n<!-- gpu-table:begin h200 -->\n%s\n<!-- gpu-table:end h200 -->\nafter\n' "$summary" |
  diff - "$work/document.md" || fail 'the document is not as it should be'
mkdir "$work/performance"
touch "$work/performance/h200.md"
"$report" "$numbers" --document "$work/document.md" || fail "--document with a page: exit code $?"
expect "$(cat "$work/document.md")" '](performance/h200.md)
<!-- gpu-table:end h200 -->'
[[ $(find "$work" -name '*.part') == '' ]] || fail 'a temporary file was left'

echo 'no markers' >"$work/bare.md"
refuse 1 'must have one of each' "$numbers" --document "$work/bare.md"
[[ $(cat "$work/bare.md") == 'no markers' ]] || fail 'a refused document was changed'
echo '{"program": "bench_cuda"' >"$work/cut.json"
refuse 1 'must be JSON written by bench_cuda' "$work/cut.json"
refuse 1 'program triton_dual_gemm; must be bench_cuda' "$work/triton.json"
refuse 1 'program bench_cuda; must be triton_dual_gemm' "$numbers" --triton "$numbers"
refuse 1 'no shapes' <(echo '{"program": "bench_cuda", "shapes": []}')
refuse 1 'must be complete' <(echo '{"program": "bench_cuda", "shapes": [{"n": 1}]}')
refuse 1 'No such file' "$work/absent.json"

if python3 -c 'import matplotlib' 2>/dev/null; then
  for name in one two; do "$report" "$numbers" --plot "$work/$name.svg" >/dev/null || fail "--plot: exit code $?"; done
  cmp "$work/one.svg" "$work/two.svg" || fail 'the same numbers gave two plots'
  grep -q '<svg' "$work/one.svg" || fail 'no SVG'
else
  refuse 1 'needs it' "$numbers" --plot "$work/absent.svg"
  [[ ! -e $work/absent.svg ]] || fail 'a plot without matplotlib'
fi
echo "report_gpu_bench_test: $failures failed"
[[ $failures -eq 0 ]]
