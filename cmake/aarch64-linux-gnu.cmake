# Builds for 64-bit Arm on another machine: Debian's cross compiler, what scripts/build/get_aarch64_packages has put below
# build/, and qemu-user, which runs the tests. Its processor has every instruction set that this version of qemu knows.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(DUALGEMM_AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/_aarch64 ABSOLUTE)
if(NOT EXISTS ${DUALGEMM_AARCH64_ROOT}/packages/libfmt-dev)  # which the script leaves behind when it is done with it
  message(FATAL_ERROR "build/_aarch64: Debian's packages for arm64 are not there; "
    "run scripts/build/get_aarch64_packages first (for aarch64_cuda: scripts/build/get_aarch64_packages cuda)")
endif()
set(CMAKE_FIND_ROOT_PATH ${DUALGEMM_AARCH64_ROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)  # nlohmann-json and CLI11 are headers, for any processor

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
