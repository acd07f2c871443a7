#!/bin/bash
# Installs a build into a fresh prefix, moves the prefix (packages must be relocatable), and uses it as a stranger would:
# CMake package from C++ and C, pkg-config, the command. Usage: run.sh <build dir> <this dir> <cmake> <c++> <cc>
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
libdir=$(dirname "$(find "$prefix" -name 'libdualgemm.so')")

# Names and versions of the library.
version=$("$prefix/bin/dualgemm" --version | grep -o '[0-9]*\.[0-9]*\.[0-9]*')
[[ -f $libdir/libdualgemm.so.$version && ! -L $libdir/libdualgemm.so.$version ]] || fail "no libdualgemm.so.$version"
readelf -d "$libdir/libdualgemm.so" | grep -q "SONAME.*\[libdualgemm.so.${version%%.*}\]" || fail "wrong SONAME"
[[ -f $libdir/libdualgemm.a ]] || fail "no libdualgemm.a"
needed=$(readelf -d "$libdir/libdualgemm.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
  grep -vE '^(libstdc\+\+|libgcc_s|libc|libm|ld-linux.*)\.' || true)
[[ -z $needed ]] || fail "users would need: $needed"

# Only this project's names are exported.
foreign=$(nm -DC --defined-only "$libdir/libdualgemm.so" | cut -d' ' -f3- |
  grep -vE '^(dualgemm_|dualgemm::|(typeinfo|typeinfo name|vtable) for dualgemm::)' || true)
[[ -z $foreign ]] || fail "exported, but not ours: $(head -n 5 <<<"$foreign")"

# The CMake package.
user_project() { # <build folder> <programs that must run> <cmake arguments...>
  local folder=$1 programs=$2 program
  shift 2
  if ! { "$cmake" -G Ninja -S "$here" -B "$folder" -DCMAKE_PREFIX_PATH="$prefix" "$@" &&
    "$cmake" --build "$folder"; } >"$work/log" 2>&1; then
    cat "$work/log"
    fail "the user's project does not build"
  fi
  for program in $programs; do
    "$folder/$program" || fail "$program"
  done
}
user_project "$work/user" "user_cpp user_static user_c" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_COMPILER="$cc"
user_project "$work/user_c_only" user_c -DC_ONLY=ON -DCMAKE_C_COMPILER="$cc"
if readelf -d "$work/user/user_static" | grep -q libdualgemm; then fail "user_static needs the shared library"; fi

# pkg-config, which finds the moved prefix by the place of dualgemm.pc. No file below the prefix knows the first one.
export PKG_CONFIG_PATH=$libdir/pkgconfig
if grep -rIl "$work/first" "$prefix"; then fail "these files hold the prefix that was installed to"; fi
[[ $(pkg-config --variable=prefix dualgemm) -ef $prefix ]] || fail "pkg-config: prefix $(pkg-config --variable=prefix dualgemm)"
flags=$(pkg-config --cflags --libs dualgemm)
# shellcheck disable=SC2086  # flags is a list of words
"$cc" -std=c99 "$here/user.c" $flags -o "$work/user_pc"
LD_LIBRARY_PATH=$libdir "$work/user_pc" || fail "pkg-config user"
# shellcheck disable=SC2046
"$cxx" -std=c++20 "$here/user.cpp" $(pkg-config --cflags dualgemm) "$libdir/libdualgemm.a" \
  $(pkg-config --libs-only-l --static dualgemm | sed 's/-ldualgemm//') \
  $(pkg-config --libs-only-L --static dualgemm) -o "$work/user_pc_static"
"$work/user_pc_static" || fail "pkg-config user of the static library"
[[ $(pkg-config --modversion dualgemm) == "$version" ]] || fail "dualgemm.pc names another version"

# Documents and examples; the man page and completions that the command writes.
for file in README.md LICENSE CHANGELOG.md docs/formats.md examples; do
  [[ -e $prefix/share/doc/dualgemm/$file ]] || fail "share/doc/dualgemm/$file is not installed"
done
if "$prefix/bin/dualgemm" man >"$work/man" 2>/dev/null; then
  cmp "$work/man" "$prefix/share/man/man1/dualgemm.1" || fail "another man page"
  for file in bash-completion/completions/dualgemm zsh/site-functions/_dualgemm fish/vendor_completions.d/dualgemm.fish; do
    [[ -s $prefix/share/$file ]] || fail "share/$file is not installed"
  done
fi

# A package is made of a staged installation.
DESTDIR=$work/stage "$cmake" --install "$build" --prefix /usr >/dev/null
[[ -x $work/stage/usr/bin/dualgemm && -f $work/stage/usr/include/dualgemm/dualgemm.h ]] || fail "DESTDIR"
echo "installed package: passed"
