#!/bin/bash
# The checker must find each overlong line of prose, at its line, and nothing in what may be long.
# Usage: check_docs_test.sh <scripts/check_docs>
set -uo pipefail
checker=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
words=$(printf 'word %.0s' {1..25}) # 125 characters

refused() { # <where> <document>
  local output
  printf '%b' "$2" >"$work/a.md"
  if output=$("$checker" "$work/a.md") || [[ $output != "$work/a.md:$1: "*'documents: 0 passed, 1 failed' ]]; then
    printf 'not refused at line %s:\n%s\n%s\n' "$1" "$2" "$output"
    failures=$((failures + 1))
  fi
}
accepted() { # <document>
  local output
  printf '%b' "$1" >"$work/a.md"
  if ! output=$("$checker" "$work/a.md") || [[ $output != 'documents: 1 passed, 0 failed' ]]; then
    printf 'refused:\n%s\n%s\n' "$1" "$output"
    failures=$((failures + 1))
  fi
}
refused 1 "$words\n"
refused 3 "# Title\n\n$words"
refused 1 "- $words\n"
refused 2 "- item\n    $words\n"
refused 4 "- item\n\n  more\n    $words\n"
refused 4 "\`\`\`\ncode\n\`\`\`\n$words\n"
refused 2 "prose\n    $words\n" # goes on with the paragraph
refused 1 "> $words\n"
accepted "| cell | $words |\n|---|---|\n"
accepted "\`\`\`sh\n$words\n\`\`\`\nprose\n"
accepted "~~~\n$words\n\`\`\`\n$words\n~~~\n"
accepted "prose\n\n    $words\n    $words\n\nprose\n"
accepted "[link]: https://example.org/$words\n"
accepted "https://example.org/$(tr ' ' '-' <<<"$words")\n"
accepted "$(printf 'ᵀ·α %.0s' {1..30})\n" # 120 characters, more bytes
refused 1 "$(printf 'ᵀ·α %.0s' {1..31})\n"

mkdir -p "$work/docs/kernels" "$work/docs/lab"
yes line | head -151 | tee "$work/docs/kernels/long.md" "$work/docs/lab/long.md" >/dev/null
yes line | head -150 >"$work/docs/kernels/short.md"
if "$checker" "$work/docs/kernels/long.md" >/dev/null; then
  echo 'a kernel page of 151 lines passed'
  failures=$((failures + 1))
fi
if ! "$checker" "$work/docs/lab/long.md" "$work/docs/kernels/short.md" >/dev/null; then
  echo 'a laboratory page of 151 lines, or a kernel page of 150, was refused'
  failures=$((failures + 1))
fi

yes line | head -251 >"$work/docs/performance.md"
if "$checker" "$work/docs/performance.md" >/dev/null; then
  echo 'a page of results of 251 lines passed'
  failures=$((failures + 1))
fi
yes line | head -250 >"$work/docs/performance.md"
if ! "$checker" "$work/docs/performance.md" >/dev/null; then
  echo 'a page of results of 250 lines was refused'
  failures=$((failures + 1))
fi

mkdir -p "$work"/tree/{docs,src/core,src/cuda/device,tools/cli,ptxsim/src/insn/alu}
folders() { # <1 or 0 findings expected> <what is left out of the document>
  local output status=0
  printf '| folder | |\n|---|---|\n| `src/core/` | |\n| `src/cuda/` | `device/` |\n| `tools/cli/` | |\n| `insn/` | `alu/` |\n' |
    sed "s#${2:-^$}##" >"$work/tree/docs/architecture.md"
  output=$("$checker" --folders "$work/tree") || status=$?
  if [[ $status -ne $1 || $output != *", $1 failed" ]]; then
    printf 'without %s the folders are judged wrongly:\n%s\n' "${2:-anything less}" "$output"
    failures=$((failures + 1))
  fi
}
folders 0 ''
folders 1 '`src/core/`'
folders 1 '`device/`'
folders 1 '`tools/cli/`'
folders 1 '`alu/`'
if "$checker" "$work/absent.md" >/dev/null 2>&1; then
  echo 'a file that is not there passed'
  failures=$((failures + 1))
fi
echo "check_docs_test: $failures failed"
[[ $failures -eq 0 ]]
