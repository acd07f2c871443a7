#!/bin/bash
# Installs a build into a fresh prefix, moves the prefix (packages must be relocatable), and uses it as a stranger would:
# the CMake package, `ptxsim run` and `ptxsim exec`. Usage: run.sh <build dir> <this dir> <cmake> <c++> <cc>
set -euo pipefail
build=$1 here=$2 cmake=$3 cxx=$4 cc=$5
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAILED: $*" >&2
  exit 1
}

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/prefix"
prefix=$work/prefix
if grep -rIl "$work/first" "$prefix"; then fail "these files hold the prefix that was installed to"; fi
[[ -f $prefix/share/doc/ptxsim/README.md && -f $prefix/share/doc/ptxsim/docs/guide.md ]] || fail "no documents"

[[ -f $prefix/share/ptxsim/schema/reports.json ]] || fail "no schema of reports"

# The CMake package.
if ! { "$cmake" -S "$here" -B "$work/user" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" &&
  "$cmake" --build "$work/user"; } >"$work/log" 2>&1; then
  cat "$work/log"
  fail "the user's project does not build"
fi
"$work/user/user" "$here/../rules/R16_good.ptx" || fail "the user's program"

# A kernel and a program, by the installed command alone.
"$prefix/bin/ptxsim" run "$here/../rules/R16_good.ptx" >"$work/log" 2>&1 || fail "ptxsim run: $(cat "$work/log")"
# Its case expects the race.
"$prefix/bin/ptxsim" run --json "$here/../rules/R16_bad.ptx" >"$work/log" 2>&1 || fail "ptxsim run: $(cat "$work/log")"
grep -q '"rule": "R16"' "$work/log" || fail "ptxsim run found no race: $(cat "$work/log")"
"$cc" "$here/../exec/program/driver_program.c" -o "$work/program" -L"$prefix/lib/ptxsim" -l:libcuda.so.1 \
  -Wl,--allow-shlib-undefined || fail "a program does not link with lib/ptxsim/libcuda.so.1"
"$prefix/bin/ptxsim" exec -- "$work/program" >"$work/log" 2>&1 || fail "ptxsim exec: $(cat "$work/log")"
for name in libcudart.so.12 libcudart.so.13 libcublas.so.13 libcublasLt.so.13 python/sitecustomize.py; do
  [[ -e $prefix/lib/ptxsim/$name ]] || fail "lib/ptxsim/$name is not installed"
done
echo "installed package: passed"
