# One OBJECT library per layer of src/, so that a target can take exactly the layers it may use.
# Objects travel only along direct links: name every layer that a target needs.
function(dualgemm_add_layer layer)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${layer}/*.cpp)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    list(FILTER sources EXCLUDE REGEX "/isa/(avx2|avx512|amx)[^/]*\\.cpp$")
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(dualgemm_${layer} OBJECT ${sources})
  target_include_directories(dualgemm_${layer} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(dualgemm_${layer} PUBLIC dualgemm_flags OpenMP::OpenMP_CXX ${ARG_LIBS})
  set_target_properties(dualgemm_${layer} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# Links `target` to those of the named layers that exist.
function(dualgemm_link_layers target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE dualgemm_flags)
  foreach(layer ${ARGN})
    if(TARGET dualgemm_${layer})
      target_link_libraries(${target} PRIVATE dualgemm_${layer})
    endif()
  endforeach()
endfunction()

# Instruction sets are chosen at run time: only the files that hold intrinsics are compiled for more than the base machine.
function(dualgemm_set_isa_flags)
  set(avx2 -mavx2 -mfma -mf16c)
  # GCC 12's own AVX-512 headers trip these two warnings (GCC bug 105593).
  set(avx512 -Wno-uninitialized -Wno-maybe-uninitialized -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c -mprefer-vector-width=512)
  set(avx512vbmi ${avx512} -mavx512vbmi)
  set(amx ${avx512} -mavx512bf16 -mamx-tile -mamx-bf16)
  foreach(isa avx2 avx512 avx512vbmi amx)  # avx512* takes avx512vbmi* too: the later one wins
    file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cpu/isa/${isa}*.cpp)
    if(files)
      set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${${isa}}")
    endif()
  endforeach()
endfunction()
