#!/bin/bash
# Wrong arguments, and a machine whose GPUs are hidden: exit code 2, one line that says what and which rule, nothing on
# stdout, no file. Usage: bench_cuda_usage_test.sh <bench_cuda>
set -uo pipefail
bench=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUDA_VISIBLE_DEVICES=-1
failures=0
refuse() { # <what the line must contain> <arguments...>
  local part=$1 status
  shift
  "$bench" "$@" >"$work/out" 2>"$work/err"
  status=$?
  if [[ $status -ne 2 || -s $work/out || $(wc -l <"$work/err") -ne 1 || $(cat "$work/err") != "bench_cuda: "*"$part"* ]]; then
    printf '%s: exit code %d, wanted 2 and one line with: %s\n' "$*" "$status" "$part"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
  fi
}
refuse '--m: 0; must be 1 to 16384' --m 1,0
refuse '--m: 20000; must be 1 to 16384' --m 20000
refuse '--m: x; must be' --m x
refuse '--m: nothing; must be' --m 1,
refuse '--m: -1; must be' --m=-1
refuse '--shapes: 4096; must be like 4096x7168' --shapes 4096
refuse '--shapes: n: 100; must be a multiple of 128' --shapes 100x7168
refuse '--shapes: k: 7160; must be a multiple of 64' --shapes 4096x7168,4096x7160
refuse '--shapes: k: 99999999999999999999; must be' --shapes 4096x99999999999999999999
refuse 'two_passes' --strategies two_passes
refuse '--strategies: fused; must be one of the others' --strategies fused
refuse '--seconds: 0; must be above 0' --seconds 0
refuse '--seconds: nan; must be above 0' --seconds nan
refuse '--unknown' --unknown
refuse 'device: cuda (' --m 1 --json "$work/numbers.json"
if [[ -e $work/numbers.json ]]; then
  echo 'a file was written without a GPU'
  failures=$((failures + 1))
fi
if ! "$bench" --help | grep -q -- --shapes; then
  echo '--help does not help'
  failures=$((failures + 1))
fi
echo "bench_cuda_usage_test: $failures failed"
[[ $failures -eq 0 ]]
