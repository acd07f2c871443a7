#!/bin/bash
# Installs a build into a fresh prefix, moves it, and reads a checkpoint through the installed package: CMake (shared and
# static) from C++ and C, and pkg-config. Usage: checkpoint.sh <build dir> <this dir> <cmake> <c++> <cc>
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
libdir=$(dirname "$(find "$prefix" -name 'libdualgemm_checkpoint.so')")
[[ -f $libdir/libdualgemm_checkpoint.a ]] || fail "no libdualgemm_checkpoint.a"

# Only this project's names are exported, and of them only the public ones; the core library has none of them.
foreign=$(nm -DC --defined-only "$libdir/libdualgemm_checkpoint.so" | cut -d' ' -f3- |
  grep -vE '^(dualgemm_checkpoint_|dualgemm::Checkpoint(Layer|Matrix)?::)' || true)
[[ -z $foreign ]] || fail "exported, but not public: $(head -n 5 <<<"$foreign")"
if nm -DC --defined-only "$libdir/libdualgemm.so" | grep -i checkpoint; then fail "the core library reads checkpoints"; fi

"$prefix/bin/dualgemm" make-layer --out "$work/l.safetensors" --n 32 --k 64 2>/dev/null
"$prefix/bin/dualgemm" quantize "$work/l.safetensors" --out "$work/q.safetensors" 2>/dev/null

mkdir "$work/project"
cp "$here"/checkpoint_user.c "$here"/checkpoint_user.cpp "$work/project"
cat >"$work/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(checkpoint_user LANGUAGES C CXX)
find_package(dualgemm 0.1 REQUIRED)
add_executable(user_cpp checkpoint_user.cpp)
target_link_libraries(user_cpp PRIVATE dualgemm::checkpoint)
add_executable(user_static checkpoint_user.cpp)
target_link_libraries(user_static PRIVATE dualgemm::checkpoint_static)
add_executable(user_c checkpoint_user.c)
set_target_properties(user_c PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
target_compile_options(user_c PRIVATE -Wall -Wextra -Wpedantic -Werror)
target_link_libraries(user_c PRIVATE dualgemm::checkpoint)
END
if ! { "$cmake" -G Ninja -S "$work/project" -B "$work/user" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" \
  -DCMAKE_C_COMPILER="$cc" && "$cmake" --build "$work/user"; } >"$work/log" 2>&1; then
  cat "$work/log"
  fail "the user's project does not build"
fi
if readelf -d "$work/user/user_static" | grep -q libdualgemm; then fail "user_static needs a shared library"; fi

export PKG_CONFIG_PATH=$libdir/pkgconfig
flags=$(pkg-config --define-variable=prefix="$prefix" --cflags --libs dualgemm_checkpoint)
# shellcheck disable=SC2086  # flags is a list of words
"$cc" -std=c99 "$here/checkpoint_user.c" $flags -L"$libdir" -I"$prefix/include" -o "$work/user/user_pc"

expected=$("$work/user/user_cpp" "$work/q.safetensors") || fail user_cpp
for program in user_static user_c user_pc; do
  result=$(LD_LIBRARY_PATH=$libdir "$work/user/$program" "$work/q.safetensors") || fail "$program"
  [[ $result == "$expected" ]] || fail "$program: $result instead of $expected"
done
if "$work/user/user_c" "$work/l.safetensors" 2>"$work/log"; then fail "bf16 weights ran"; fi
grep -q "must be NVFP4" "$work/log" || fail "$(cat "$work/log")"
echo "installed checkpoint package: passed"
