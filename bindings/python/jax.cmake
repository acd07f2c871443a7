# dualgemm/_jax.so: JAX's targets, where jaxlib's headers are.
# Older XLA refuses a library built with newer headers: build with those of the oldest jaxlib that is to be served.
dualgemm_find_headers(DUALGEMM_JAX_INCLUDE jaxlib)
if(NOT EXISTS "${DUALGEMM_JAX_INCLUDE}/xla/ffi/api/ffi.h")
  message(STATUS "no headers of jaxlib (DUALGEMM_JAX_INCLUDE): the package gets no dualgemm.jax")
  return()
endif()
message(STATUS "XLA's headers: ${DUALGEMM_JAX_INCLUDE}")
add_library(dualgemm_jax MODULE src/jax/glu.cpp src/plan_cache.cpp)
set_target_properties(dualgemm_jax PROPERTIES PREFIX "" OUTPUT_NAME _jax CXX_VISIBILITY_PRESET hidden
  VISIBILITY_INLINES_HIDDEN ON BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/lib")
target_include_directories(dualgemm_jax SYSTEM PRIVATE ${DUALGEMM_JAX_INCLUDE})
target_compile_options(dualgemm_jax PRIVATE -Wall -Wextra -O2 -fmacro-prefix-map=${root}/=
  -fmacro-prefix-map=${DUALGEMM_JAX_INCLUDE}/=)
target_link_libraries(dualgemm_jax PRIVATE ${library})
install(TARGETS dualgemm_jax DESTINATION dualgemm)
