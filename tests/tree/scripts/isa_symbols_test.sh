#!/bin/bash
# The files of src/cpu/isa are compiled for processors that not every user has. A function that such a file emits as a
# weak symbol (an inline function or a template that was not inlined) may be the copy that the linker keeps for the whole
# library, and then the library dies of an illegal instruction elsewhere. So there must be none.
# Usage: isa_symbols_test.sh <objects of the cpu layer...>
set -euo pipefail
checked=0
found=0
for object in "$@"; do
  [[ $object == */cpu/isa/* && $object != */scalar.cpp.o ]] || continue
  checked=$((checked + 1))
  if nm -C --defined-only "$object" | grep -E ' [WV] '; then
    echo "  in $object" >&2
    found=1
  fi
done
echo "$checked objects checked"
[[ $checked -gt 0 && $found -eq 0 ]]
