#!/bin/bash
# The checker must find each planted sentence, at its line, and nothing in what is code, a name or plain prose.
# Usage: check_prose_test.sh <scripts/check_prose>
set -uo pipefail
checker=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# found <file> <line> <what the finding must contain> <text>
found() {
  local output
  rm -rf "${work:?}"/*
  mkdir -p "$work/$(dirname "$1")"
  printf '%b' "$4" >"$work/$1"
  if output=$("$checker" "$work") || [[ $output != *"$1:$2: "*"$3"*'prose: 0 passed, 1 failed' ]]; then
    printf 'not found at line %s of %s:\n%b\n%s\n' "$2" "$1" "$4" "$output"
    failures=$((failures + 1))
  fi
}
# accepted <file> <text>
accepted() {
  local output
  rm -rf "${work:?}"/*
  mkdir -p "$work/$(dirname "$1")"
  printf '%b' "$2" >"$work/$1"
  if ! output=$("$checker" "$work") || [[ $output != 'prose: 1 passed, 0 failed' ]]; then
    printf 'refused: %s\n%b\n%s\n' "$1" "$2" "$output"
    failures=$((failures + 1))
  fi
}

found src/core/a.hpp 2 '"Of"' 'int a;\n// Of two numbers the larger.\n'
found src/core/a.hpp 1 '"Of"' 'int a = 1;  // Of one CTA.\n'
found src/core/a.hpp 2 '"Of"' '// The larger of two. Of\n// Of equal ones the first.\n'
found src/core/a.hpp 2 '"Of"' '/**\n * Of two numbers the larger.\n */\n'
found src/cuda/a.cu 2 '"Nobody"' '// A row.\n// Nobody reads it.\n'
found src/cuda/a.cuh 3 '"who makes"' "char c = '\"';\nint n = 1'000;\n// For who makes the table.\n"
found src/api/a.cpp 1 '"nobody"' 'return Status::invalid("a", "which nobody has written");\n'
found src/api/a.cpp 2 '"Of"' 'text = R"(\nOf all rows the first)";\n'
found tests/a.ptx 1 '"everybody"' '//! {"comment": "a word that everybody has read"}\n'
found tests/a.json 2 '"nobody"' '{\n"reason": "nobody waits for it"}\n'
found scripts/a.py 2 '"whoever"' 'a = 1\n# The sum is of whoever takes it.\n'
found scripts/a.py 2 '"Of"' 'def f():\n    """Of a list, the last."""\n'
found scripts/tool 2 '"anybody"' '#!/bin/bash\na=1 # before anybody asks\n'
found scripts/tool 3 '"Of"' '#!/usr/bin/env python3\na = 1\n# Of a list, the last.\n'
found cmake/a.cmake 1 '"Of"' '# Of the tests the quick ones.\n'
found Makefile 1 '"Of"' '# Of the tests the quick ones.\n'
found docs/a.md 3 '"Of"' '# Title\n\nRows are read once. Of\nothers nothing is read.\n'
found docs/a.md 1 '"Of"' '| a | Of all rows the first |\n'
found docs/a.md 4 '"Whoever"' '```\nOf code nothing is read.\n```\n- Whoever calls it.\n'

# A comment ends at column 100 at the latest; code, literals and PTX are not looked at, and columns are no bytes.
wide=$(printf 'a%.0s' {1..98}) # behind "// ": 101 columns
found src/core/a.hpp 2 'beyond column 100' "int a;\n// $wide\n"
found src/core/a.hpp 1 'beyond column 100' "int a;  // $wide\n"
found src/core/a.hpp 3 'beyond column 100' "/*\n a\n $wide aa\n*/\n"
accepted src/core/a.hpp "// ${wide:1}\nint a$wide = 1;\nconst char* text = \"// $wide\";\n"
accepted src/core/a.hpp "// ${wide:2}\xc3\xa9\n"
accepted tests/a.ptx "// $wide\n"

accepted src/core/a.hpp '// The larger of two numbers; kNobody and `nobody` are names, "Of" is quoted.\nenum { kNobody };\n'
accepted src/core/a.cpp 'const char* name = "nobody";\nint nobody = Of;\n'
accepted docs/a.md 'Rows can be `nobody`, [so](nobody.md).\n\n```sh\necho Of nobody\n```\n'
accepted scripts/a.py 'nobody = "nobody"\nprint(f"{nobody}")  # none of the rows\n'

# What is built, and what the checker lists with a reason, is not read.
rm -rf "${work:?}"/*
mkdir -p "$work/build" "$work/docs"
for file in build/a.md docs/style.md; do echo 'Of all rows the first.' >"$work/$file"; done
if ! output=$("$checker" "$work") || [[ $output != 'prose: 0 passed, 0 failed' ]]; then
  printf 'read what it should not:\n%s\n' "$output"
  failures=$((failures + 1))
fi

echo "check_prose_test: $failures failed"
[[ $failures -eq 0 ]]
