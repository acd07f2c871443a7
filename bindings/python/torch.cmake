# dualgemm/_torch.so: torch's operators on its stable ABI, where torch's headers are.
dualgemm_find_headers(DUALGEMM_TORCH_INCLUDE torch)
if(NOT EXISTS "${DUALGEMM_TORCH_INCLUDE}/torch/csrc/stable/library.h")
  message(WARNING "no headers of torch >= 2.10 (DUALGEMM_TORCH_INCLUDE): the package gets no torch operators")
  return()
endif()
message(STATUS "torch's headers: ${DUALGEMM_TORCH_INCLUDE}")

add_library(libtorch_cpu_stub SHARED src/libtorch_cpu_stub.c)
set_target_properties(libtorch_cpu_stub PROPERTIES OUTPUT_NAME torch_cpu)
file(GLOB sources CONFIGURE_DEPENDS src/*.cpp)
dualgemm_add_module(dualgemm_torch _torch ${DUALGEMM_TORCH_INCLUDE} ${sources})
# 2.10: the oldest torch that has all of what is used here.
target_compile_definitions(dualgemm_torch PRIVATE TORCH_TARGET_VERSION=0x020a000000000000)
# Found by name when torch is there; the symbols are torch's.
target_link_options(dualgemm_torch PRIVATE LINKER:--no-as-needed $<TARGET_FILE:libtorch_cpu_stub> LINKER:--as-needed
  LINKER:--unresolved-symbols=ignore-all)
add_dependencies(dualgemm_torch libtorch_cpu_stub)
