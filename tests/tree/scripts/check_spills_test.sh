#!/bin/bash
# check_spills must pass a clean report, and must find each planted fault and name the kernel and the bytes.
# keep_ptxas_report must keep the report, pass on the rest and fail with the compiler, and keep PTX where it is told to.
# Usage: check_spills_test.sh <scripts/check/check_spills> <scripts/build/keep_ptxas_report>
set -uo pipefail
checker=$1
keeper=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
  printf '%s\n' "$@"
  failures=$((failures + 1))
}

# report <architecture> <stack> <stores> <loads>: as CUDA 13.0 prints it
report() {
  printf "ptxas info    : 0 bytes gmem\n"
  printf "ptxas info    : Compiling entry function 'dual_gemm_test' for '%s'\n" "$1"
  printf "ptxas info    : Function properties for dual_gemm_test\n"
  printf "    %d bytes stack frame, %d bytes spill stores, %d bytes spill loads\n" "$2" "$3" "$4"
  printf "ptxas info    : Used 112 registers, used 3 barriers, 608 bytes cmem[0]\n"
}
# expect <what the output must contain> <codes> [status] [more rules...]: of the report in $work/a.cu.o.ptxas
expect() {
  local output status=0
  output=$("$checker" "${@:4}" "$work/=$2" "$work/a.cu.o" "$work/b.cpp.o" 2>&1) || status=$?
  [[ $output == *"$1"* && $status -eq ${3:-1} ]] || fail "not found: $1 (status $status)" "$output"
}

clean="$work/a.cu.o.ptxas"
{ report sm_80 0 0 0 && report sm_90a 0 0 0; } >"$clean"
expect '1 kernels on 2 architectures, 0 faults' sm_80,sm_90a 0
expect '112      112' sm_80,sm_90a 0
expect 'dual_gemm_test was not compiled for sm_100a' sm_80,sm_90a,sm_100a
expect 'dual_gemm_test was not compiled for sm_120' sm_80 1 /a.cu=sm_80,sm_120 # the first rule that fits
expect '1 kernels on 2 architectures, 0 faults' sm_120 0 /b.cu=sm_103 /a.cu=sm_80,sm_90a
if output=$("$checker" /other/=sm_80 "$work/a.cu.o" 2>&1) || [[ $output != *'no rule says what'* ]]; then
  fail 'an object without a rule must fail' "$output"
fi

{ report sm_80 0 0 0 && report sm_90a 24 16 32; } >"$clean"
expect 'dual_gemm_test on sm_90a: 24 bytes of stack, 16 bytes of spill stores, 32 bytes of spill loads' sm_80,sm_90a
report sm_80 8 0 0 >"$clean" # an array that is indexed at run time
expect 'dual_gemm_test on sm_80: 8 bytes of stack' sm_80
{
  report sm_90a 0 0 0
  echo "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to x in function 'dual_gemm_test'"
} >"$clean"
expect "serialized due to x in function 'dual_gemm_test'" sm_90a
echo "ptxas info    : 0 bytes gmem" >"$clean"
expect 'no kernel in any report' sm_80
rm "$clean"
expect 'no report of ptxas at all' sm_80

# shellcheck disable=SC2016  # a stand-in for nvcc, which says what $work/says holds and exits with $1.
printf '#!/bin/bash\ncat %q >&2\nexit "$1"\n' "$work/says" >"$work/nvcc"
chmod +x "$work/nvcc"
{ report sm_80 0 0 0 && echo "a.cu(3): warning #177-D: variable was declared"; } >"$work/says"
output=$("$keeper" "$work/nvcc" 0 -c a.cu -o "$work/a.cu.o" 2>&1) || fail "keep_ptxas_report failed" "$output"
[[ $output == 'a.cu(3): warning #177-D: variable was declared' ]] || fail 'not what the compiler said:' "$output"
expect '1 kernels on 1 architectures, 0 faults' sm_80 0
if "$keeper" "$work/nvcc" 3 -c a.cu -o "$work/a.cu.o" 2>/dev/null || [[ $? -ne 3 || -e $work/a.cu.o.ptxas ]]; then
  fail 'a failed compilation must fail, and leave no report'
fi

# The PTX of one architecture's code, which take_ptx prefers to compiling it again.
# shellcheck disable=SC2016
printf '#!/bin/bash\nfolder=${NVCC_APPEND_FLAGS##*--keep-dir }\n[[ -z $folder ]] || echo kept >"$folder/a.ptx"\n' >"$work/nvcc"
taken="$work/taken.ptx"
# take <what it must hold> <arguments of keep_ptxas_report...>
take() {
  "$keeper" "${@:2}" -c "$work/a.cu" -o "$work/a.cu.o" 2>/dev/null || fail "keep_ptxas_report failed: ${*:2}"
  "$(dirname "$keeper")/take_ptx" "$work/a.cu.o" "$taken" sh -c "echo compiled >$taken"
  [[ $(<"$taken") == "$1" && ! -e $work/a.cu.o.kept ]] || fail "${*:2}: not $1 but $(<"$taken")"
}
one=-gencode=arch=compute_90a,code=sm_90a
take kept --ptx "$work/nvcc" "$one"
[[ $(<"$taken.d") == "$taken: $work/a.cu.o" ]] || fail "not what it depends on: $(<"$taken.d")"
take compiled "$work/nvcc" "$one" # and nothing is left of the one before
take compiled --ptx "$work/nvcc" "$one" -gencode=arch=compute_80,code=sm_80
take compiled --ptx "$work/nvcc" '-gencode=arch=compute_80,code=[compute_80,sm_80]'

echo "check_spills_test: $failures failed"
[[ $failures -eq 0 ]]
