#!/bin/bash
# The checker must find each planted fault, at its line, and nothing in a clean tree.
# Usage: check_architecture_test.sh <scripts/check_architecture>
set -uo pipefail
checker=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# plant <file> <line of code> <what the finding must contain>
plant() {
  rm -rf "${work:?}"/*
  mkdir -p "$work/src/core" "$work/$(dirname "$1")"
  printf '#include "core/problem.hpp"\n// asm("in a comment"), printf("too"), _mm_add_ps(\n' >"$work/src/core/clean.cpp"
  printf 'namespace dualgemm {}\n%s\n' "$2" >"$work/$1"
  local output
  if output=$("$checker" "$work") || [[ $output != *"$1:2: "*"$3"* ]]; then
    printf 'not found: %s in %s\n%s\n' "$2" "$1" "$output"
    failures=$((failures + 1))
  fi
}
plant src/core/a.cpp '#include "plan/strategy.hpp"' 'core must not include'
plant src/cpu/a.cpp '#include "reference/dual_gemm.hpp"' 'cpu must not include'
plant src/capi/a.cpp '#include "cpu/run.hpp"' 'capi must not include'
plant include/dualgemm/a.hpp '#include "core/problem.hpp"' 'public must not include'
plant src/cuda/ptx/a.cuh '#include "cuda/device/pipeline.cuh"' 'cuda/ptx must not include'
plant src/cuda/kernels/sm100a_pair/a.cpp '#include "cuda/kernels/sm100a/launch.hpp"' 'cuda/kernels/sm100a_pair must not include'
plant src/cuda/kernels/sm100a_pair/groups/a.cpp '#include "cuda/kernels/sm100a_skinny/launch.hpp"' 'cuda/kernels/sm100a_pair must not include'
plant src/cuda/kernels/sm90a/a.cuh '#include "cuda/kernels/blackwell/stage.hpp"' 'cuda/kernels/sm90a must not include'
plant src/cuda/kernels/blackwell/a.hpp '#include "cuda/kernels/sm100a/config.hpp"' 'cuda/kernels/blackwell must not include'
plant src/cuda/kernels/common/a.cpp '#include "cuda/kernels/convert/repack.hpp"' 'cuda/kernels/common must not include'
plant src/checkpoint/a.cpp '#include "plan/choose.hpp"' 'checkpoint must not include'
plant src/core/a.cpp '#include "checkpoint/tensor.hpp"' 'core must not include'
plant tools/verify/a.cpp '#include "tools/checkpoint_jobs/model_folder.hpp"' 'tools/verify must not include'
plant tools/cli/print/a.cpp '#include "tools/cli/parse/args.hpp"' 'tools/cli/print must not include'
plant tools/cli/parse/a.cpp '#include "tools/cli/commands/output_file.hpp"' 'tools/cli/parse must not include'
plant ptxsim/src/machine/a.cpp '#include "check/sanitizer.hpp"' 'ptxsim/src/machine must not include'
plant ptxsim/src/machine/memory/a.cpp '#include "ptxsim/parse/parser.hpp"' 'ptxsim/src/machine must not include'
plant ptxsim/src/insn/alu/a.cpp '#include "trace/text_tracer.hpp"' 'ptxsim/src/insn must not include'
plant ptxsim/src/ptxsim.cpp '#include "check/sanitizer.hpp"' 'ptxsim/src/ptxsim.cpp must not include'
plant ptxsim/src/check/a.cpp '#include "ptxsim/tensor_map.hpp"' 'ptxsim/src/check must not include'
plant ptxsim/src/insn/memory/a.cpp '#include "insn/async/cp.hpp"' 'ptxsim/src/insn/memory must not include'
plant ptxsim/include/ptxsim/machine/a.hpp '#include "machine/execution.hpp"' 'a public header of ptxsim must not include'
plant ptxsim/include/ptxsim/ir/a.hpp '#include "ptxsim/machine/memory.hpp"' 'ptxsim/src/ir must not include'
# The library and ptxsim include nothing of each other; tests of the library take public headers.
plant ptxsim/src/case/a.cpp '#include "dualgemm/types.hpp"' 'ptxsim must not include'
plant ptxsim/src/machine/a.cpp '#include "core/problem.hpp"' 'ptxsim must not include'
plant ptxsim/tests/unit/a.cpp '#include "cuda/runtime/kernel.hpp"' 'ptxsim must not include'
plant include/dualgemm/a.hpp '#include "ptxsim/ptxsim.hpp"' 'include must not include'
plant src/core/a.cpp '#include "ptxsim/error.hpp"' 'src must not include'
plant tools/verify/a.cpp '#include "ptxsim/ptxsim.hpp"' 'tools must not include'
plant bindings/python/a.cpp '#include "ptxsim/ptxsim.hpp"' 'bindings must not include'
plant bench/cpu/a.cpp '#include "ptxsim/ptxsim.hpp"' 'bench must not include'
plant examples/a.cpp '#include "ptxsim/ptxsim.hpp"' 'examples must not include'
plant tests/kernels/a.cpp '#include "ptxsim/src/machine/execution.hpp"' 'tests must not include'
plant src/cpu/a.cpp '#include <immintrin.h>' 'intrinsics'
plant src/cpu/a.cpp 'auto x = _mm512_add_ps(a, b);' 'intrinsics'
plant src/cuda/kernels/a.cu 'asm volatile("nop;");' 'inline assembly'
plant src/cpu/isa/a.cpp 'asm volatile("nop" : : );' 'inline assembly'
plant src/core/a.cpp 'std::exit(1);' 'neither prints'
plant src/core/a.cpp 'std::cerr << 1;' 'neither prints'
plant src/core/string_utils.cpp 'int a_utils(int);' 'mechanism'
plant src/core/a.cpp '#if 0' 'dead code'
plant src/core/a.cpp '// TODO: later' 'open point'

# circle <what the finding must contain> <file> <include> <file> <include> ...
circle() {
  local message=$1 output
  shift
  rm -rf "${work:?}"/*
  while [[ $# -gt 0 ]]; do
    mkdir -p "$work/$(dirname "$1")"
    printf '#include "%s"\n' "$2" >>"$work/$1"
    shift 2
  done
  if output=$("$checker" "$work") || [[ $output != *"a circle of includes:"*"$message"* ]]; then
    printf 'circle not found: %s\n%s\n' "$message" "$output"
    failures=$((failures + 1))
  fi
}
circle src/core/b.hpp src/core/a.hpp core/b.hpp src/core/b.hpp core/c.hpp src/core/c.hpp core/a.hpp
circle include/dualgemm/b.hpp include/dualgemm/a.hpp dualgemm/b.hpp include/dualgemm/b.hpp dualgemm/a.hpp
# Circles of parts, though not of files.
circle src/cuda/kernels/sm80 src/cuda/kernels/sm80/a.cpp cuda/kernels/sm90a/b.hpp \
  src/cuda/kernels/sm90a/c.cpp cuda/kernels/sm80/d.hpp src/cuda/kernels/sm90a/b.hpp x.hpp src/cuda/kernels/sm80/d.hpp x.hpp
circle ptxsim/src/parse ptxsim/src/parse/a.cpp ptxsim/ir/b.hpp ptxsim/src/ir/c.cpp parse/d.hpp \
  ptxsim/include/ptxsim/ir/b.hpp x.hpp ptxsim/src/parse/d.hpp x.hpp

rm -rf "${work:?}"/*
mkdir -p "$work/src/cpu/isa" "$work/src/cuda/ptx" "$work/tests"
printf '#include <immintrin.h>\nvoid pin(int& v) { asm volatile("" : "+r"(v)); }\n' >"$work/src/cpu/isa/avx2.cpp"
echo 'asm volatile("nop;");' >"$work/src/cuda/ptx/nop.cuh"
echo 'asm volatile("nop;"); int main() { printf("x"); }' >"$work/tests/a.cpp"
mkdir -p "$work/src/cuda/kernels/sm100a_pair/groups"
printf '#include "cuda/kernels/%s"\n' common/a.hpp convert/a.hpp blackwell/a.hpp sm100a_pair/a.hpp sm100a_pair/groups/b.hpp \
  >"$work/src/cuda/kernels/sm100a_pair/groups/a.hpp"
mkdir -p "$work"/ptxsim/{src/machine,include/ptxsim/machine} "$work/tests/kernels"
printf '#include "%s"\n' machine/b.hpp ptxsim/machine/c.hpp ptxsim/error.hpp ptxsim/tensor_map.hpp printable.hpp \
  >"$work/ptxsim/src/machine/a.cpp"
echo '#include "ptxsim/error.hpp"' >"$work/ptxsim/include/ptxsim/machine/c.hpp"
echo '#include "ptxsim/tensor_map.hpp"' >"$work/tests/kernels/a.cpp"
if ! output=$("$checker" "$work"); then
  printf 'a clean tree was refused:\n%s\n' "$output"
  failures=$((failures + 1))
fi
yes '// line' | head -n 801 >"$work/tests/long.cpp"
if "$checker" "$work" >/dev/null; then
  echo 'a file of 801 lines was accepted'
  failures=$((failures + 1))
fi
echo "check_architecture_test: $failures failed"
[[ $failures -eq 0 ]]
