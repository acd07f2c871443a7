# dualgemm/_jax.so: JAX's targets, where jaxlib's headers are.
# Older XLA refuses a library built with newer headers: build with those of the oldest jaxlib that is to be served.
dualgemm_find_headers(DUALGEMM_JAX_INCLUDE jaxlib)
if(NOT EXISTS "${DUALGEMM_JAX_INCLUDE}/xla/ffi/api/ffi.h")
  message(STATUS "no headers of jaxlib (DUALGEMM_JAX_INCLUDE): the package gets no dualgemm.jax")
  return()
endif()
message(STATUS "XLA's headers: ${DUALGEMM_JAX_INCLUDE}")
dualgemm_add_module(dualgemm_jax _jax ${DUALGEMM_JAX_INCLUDE} src/jax/glu.cpp src/plan_cache.cpp)
