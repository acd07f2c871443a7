#!/bin/bash
# The logic of gpu_check, with programs that only say what they were told: it passes when all pass, runs on after a
# failure and names it, fails for a program that is missing unless told to do without, refuses a skipped CUDA test, ends
# what takes too long, and its limits stay below 9 minutes.
# Usage: gpu_check_test.sh <scripts/gpu_check>
# shellcheck disable=SC2016  # the programs expand
set -uo pipefail
checker=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
search=$PATH
failures=0
steps=$(sed -n "/^limits='/,/'\$/p" "$checker" | wc -l) # of the script; below, how many of them pass

# program <name> <body>: in the folder of prebuilt programs, which is also first in PATH
program() {
  printf '#!/bin/bash\n%s\n' "$2" >"$work/$1"
  chmod +x "$work/$1"
}
plant_good() {
  rm -rf "${work:?}"/*
  program nvidia-smi 'echo "a GPU"'
  program compute-sanitizer 'echo "$2 saw $5 $7"'
  program dualgemm 'echo "dualgemm $*"'
  program ptxsim_silicon 'echo "9 cases, 0 differ"'
  program test_core 'echo "core passed"'
  program test_cpu 'echo "cpu passed"'
  program test_sm90a 'echo "needs the build tree"; exit 1'
  program test_cuda 'echo "cuda passed"'
  program bench_cuda 'echo "bench_cuda $*"'
  program bench_probes 'echo "asks $*"'
  program dualgemm-0-py3-none-any.whl ''
  program python3 'echo "python3 $DUALGEMM_TEST_DEVICE $*"'
}
# expect <0 or 1> <text...>: how it exits, and what the output contains
expect() {
  local wanted=$1 output status=0
  shift
  output=$(PATH="$work:$search" DUALGEMM_PREBUILT=$work "$checker" 2>&1) || status=$?
  local text
  for text in "$@"; do
    [[ $output == *"$text"* && $status -eq $wanted ]] && continue
    printf 'not found: %s (status %d)\n%s\n' "$text" "$status" "$output"
    failures=$((failures + 1))
    return
  done
  seen=$output
}

plant_good
expect 0 "$steps passed, 0 failed" 'core passed' 'cpu passed' 'cuda passed' 'racecheck saw' \
  'bench_cuda --shapes' 'asks' 'python3 cuda -P -m pytest -q tests/python/torch' 'dualgemm bench --device cuda --m 1,8,16,64 ' 'cpu_tests: passed'
limit=$(sed -n 's/^at most \([0-9]*\) s in all$/\1/p' <<<"$seen")
if [[ -z $limit || $limit -ge 540 ]]; then
  echo "the limits add up to '$limit' s"
  failures=$((failures + 1))
fi

program compute-sanitizer 'echo "ERROR SUMMARY: 2 errors"; exit 9'
expect 1 'failed: compute_sanitizer_memcheck compute_sanitizer_racecheck' "$((steps - 4)) passed, 4 failed" '2 errors'

plant_good
rm "$work/bench_cuda"
expect 1 'failed: bench_cuda' 'bench_cuda is missing' "$((steps - 1)) passed, 1 failed"
DUALGEMM_GPU_CHECK_WITHOUT=cuda expect 1 'bench_cuda is missing' "$((steps - 1)) passed, 1 failed"
DUALGEMM_GPU_CHECK_WITHOUT=bench_cuda expect 0 'left out without bench_cuda' "$((steps - 1)) passed, 0 failed"

plant_good
rm "$work"/dualgemm-*.whl
expect 1 'failed: python' 'python is missing' "$((steps - 1)) passed, 1 failed"
DUALGEMM_GPU_CHECK_WITHOUT=python expect 0 'left out without python' "$((steps - 1)) passed, 0 failed"

plant_good
program python3 'echo "python3 $*"; [[ $* != *torch* ]]'
expect 1 'failed: python' "$((steps - 1)) passed, 1 failed"

plant_good
rm "$work/test_cuda"
expect 1 'failed: cuda_tests compute_sanitizer_memcheck' 'test_cuda is missing' "$((steps - 5)) passed, 5 failed"
DUALGEMM_GPU_CHECK_WITHOUT='bench_cuda test_cuda' expect 0 'left out without test_cuda' "$((steps - 5)) passed, 0 failed"

if [[ ! -x /usr/bin/compute-sanitizer && ! -x /bin/compute-sanitizer ]]; then # else it is never missing
  plant_good
  rm "$work/compute-sanitizer"
  search=/usr/bin:/bin
  expect 1 'failed: compute_sanitizer_memcheck' 'compute-sanitizer is missing' "$((steps - 4)) passed, 4 failed"
  DUALGEMM_GPU_CHECK_WITHOUT=compute-sanitizer expect 0 'left out without compute-sanitizer' "$((steps - 4)) passed, 0 failed"
  search=$PATH
fi

plant_good
program test_cuda 'printf "a_test.cpp:1: Skipped\nnot a kernel of a GPU\n\nb_test.cpp:2: Skipped\nt8 does not run on a GPU\n"'
expect 0 'cuda_tests: passed' "$steps passed, 0 failed"
program test_cuda 'printf "a_test.cpp:1: Skipped\nnot a kernel of a GPU\n\nb_test.cpp:2: Skipped\nno CUDA device\n"'
program test_cpu 'echo "a CPU test failed"; exit 1'
expect 1 'failed: cuda_tests cpu_tests' 'skipped although' 'a CPU test failed' 'core passed' "$((steps - 2)) passed, 2 failed"

plant_good
program test_cuda 'echo "process $GTEST_SHARD_INDEX of $GTEST_TOTAL_SHARDS"; [[ $GTEST_SHARD_INDEX -ne 2 ]]'
expect 1 'process 0 of 4' 'process 2 of 4' 'process 3 of 4' 'failed: cuda_tests' "$((steps - 1)) passed, 1 failed"

plant_good
program nvidia-smi 'sleep 60'
expect 1 'nvidia_smi: FAILED: out of time after ' "$((steps - 1)) passed, 1 failed"

plant_good
program example_cuda_on_gpu 'echo "the example says no"; exit 1'
expect 1 'failed: cuda' 'the example says no' "$((steps - 1)) passed, 1 failed"

plant_good # a GPU that is too old is refused, and that is right
program dualgemm '[[ $1 != plan && $* != *"--device cuda"* ]] && exit 0
echo "device: old GPU of compute capability 7.5; no" >&2; exit 2'
expect 0 'cuda: passed' "$steps passed, 0 failed"

echo "gpu_check_test: $failures failed"
[[ $failures -eq 0 ]]
