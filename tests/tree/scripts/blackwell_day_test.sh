#!/bin/bash
# The logic of blackwell_day, with programs that only say what they were told: all right; a configuration that is wrong on
# problems of more than 64 columns is named, shrunk to such a problem, and another one offered; no GPU; a missing program.
# Usage: blackwell_day_test.sh <scripts/blackwell_day>
# shellcheck disable=SC2016  # the programs expand
set -uo pipefail
day=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
program() { # <name> <body>
  printf '#!/bin/bash\n%s\n' "$2" >"$work/$1"
  chmod +x "$work/$1"
}
# A GPU with two configurations: tiles of 64 columns, and of 128, which are wrong if WRONG is set; and one of groups, which is
# wrong with this option if WRONG_GROUPS names one.
dualgemm='
n=0 l=1 tile=64 config= prefix=k groups=
while [[ $# -gt 0 ]]; do
  case $1 in
    info | plan | verify | bench) command=$1 ;;
    -n) n=$2 ;;
    -l) l=$2 ;;
    --grouping) prefix=g groups=$2 ;;
    --row-experts) groups=row_experts ;;
    --config) config=$2; [[ $2 == *tile_n=128* || $2 == *_t128* ]] && tile=128; [[ $2 == *tile_n=* && $2 != *=64 && $2 != *=128 ]] && exit 2 ;;
    --json) [[ ${2:-} == /* ]] && file=$2 ;;
  esac
  shift
done
case $command in
  info) echo "{\"gpu\": ${GPU:-null}, \"build\": {\"revision\": \"abc\"}}" ;;
  plan) echo "{\"strategy\": \"fused\", \"kernel\": \"k\", \"config\": \"${prefix}_t$tile\"}" ;;
  verify)
    [[ $tile -eq 64 && $n -eq 48 ]] && { echo "n: 48; must not be" >&2; exit 2; }
    if [[ -n ${WRONG:-} && $tile -eq 128 && $n -gt 64 ]]; then echo "tile (0, 1) is wrong" >&2; exit 1; fi
    if [[ -n $groups && $groups == "${WRONG_GROUPS:-}" && $l -gt 1 ]]; then echo "tile (1, 0) is wrong" >&2; exit 1; fi
    echo "{\"cases\": [{\"results\": [{\"status\": \"ok\"}]}], \"status\": \"ok\"}" ;;
  bench) echo "{\"shapes\": [{\"results\": [{\"median_ms\": 0.0123}]}]}" >"$file" ;;
esac'
plant() {
  rm -rf "${work:?}"/*
  program dualgemm "$dualgemm"
  program bench_probes 'while [[ $1 != --json ]]; do shift; done
    echo "{\"probes\": {\"clocks\": {\"SM clock\": {\"value\": 1.5, \"unit\": \"GHz\"}}, \"tensor_pipe\": {\"refused\": \"needs 10.0\"}}}" >"$2"'
  program bench_cuda 'while [[ $1 != --json ]]; do shift; done
    echo "{\"shapes\": [{\"n\": 4096, \"k\": 7168, \"points\": [{\"m\": 256, \"ours\":
      [{\"strategy\": \"fused\", \"a\": \"e2m1\", \"prepared\": true, \"median_us\": 9.5}]}]}]}" >"$2"'
}
# expect <status> <text...>: how it ends, and what it prints or reports
expect() {
  local wanted=$1 output status=0 text
  shift
  output=$("$day" --programs "$work" --out "$work/out" 2>&1) || status=$?
  [[ -e $work/out/report.md ]] && output+=$(<"$work/out/report.md")
  for text in "$@"; do
    [[ $output == *"$text"* && $status -eq $wanted ]] && continue
    printf 'not found: %s (status %d)\n%s\n' "$text" "$status" "$output"
    failures=$((failures + 1))
  done
}

export GPU='{"name": "a GPU", "isas": ["sm90a"]}'
plant
expect 0 '# a GPU, ' ', 0 failed' 'SM clock: 1.500 GHz' 'tensor_pipe: not on this GPU: needs 10.0' '| `k_t64` | 1 | 4 | 1 | 0 | 0 | 12.30 |' '`k_t64` refuses: n: 48; must not be' \
  '| `k_t128` |' '| m, n, k | fused, prepared |' '| 256, 4096, 7168 | 9.50 |' \
  "Left out: the clock's kernels are those of sm100a; this GPU has sm90a."
plant
WRONG=1 expect 1 'configurations: failed' 'k_t128 on (129, 80, 272, 2): tile (0, 1) is wrong' '`k_t128` is wrong on (1, 80, 16, 1)' \
  '--config k_t128 -m 1 -n 80 -k 16 -l 1' 'Right on this GPU: `k_t64`.'
plant
expect 0 '| `g_t64` --grouping contiguous | 8 | 4 | 0 | 0 | 0 |  |' '| `g_t64` --grouping masked | 8 | 2 | 0 | 0 | 0 |  |' \
  '| `k_t64` --a-type bf16 | 1 | 4 | 1 | 0 | 0 | 12.30 |' '| `g_t64` --a-type bf16 --grouping masked | 8 | 2 |'
plant
WRONG_GROUPS=row_experts expect 1 'g_t64 --grouping contiguous --row-experts on (140, 80, 272, 5): tile (1, 0) is wrong' \
  '| `g_t64` --grouping masked | 8 | 2 | 0 | 0 |' '-l 2 --grouping contiguous --row-experts' 'Right on this GPU: none.'
plant
program bench_cuda 'echo "no cuBLASLt" >&2; exit 1'
expect 1 'bench_cuda: no cuBLASLt' 'configurations: passed'
plant
GPU=null expect 2 'blackwell_day: device: no GPU'
plant
rm "$work/dualgemm"
expect 2 'dualgemm: not there'

echo "blackwell_day_test: $failures failed"
[[ $failures -eq 0 ]]
