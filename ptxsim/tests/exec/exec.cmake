# The stand-in for CUDA, and programs below `ptxsim exec`: a C program of the driver's interface everywhere, nvcc's where
# there is an nvcc.
ptxsim_add_test_folder(exec ptxsim_exec)
target_link_libraries(test_ptxsim_exec PRIVATE ptxsim_cuda_parts ${PTXSIM_ZSTD} ${PTXSIM_LZ4})
target_include_directories(test_ptxsim_exec PRIVATE ${PTXSIM_ZSTD_INCLUDE} ${PTXSIM_LZ4_INCLUDE})
add_dependencies(test_ptxsim_exec ptxsim)

add_executable(ptxsim_driver_program exec/program/driver_program.c)
add_dependencies(ptxsim_driver_program ptxsim_cuda)
target_link_libraries(ptxsim_driver_program PRIVATE ptxsim_flags -L${PTXSIM_OUTPUT_FOLDER}/lib/ptxsim -l:libcuda.so.1
  -Wl,--allow-shlib-undefined)
add_executable(ptxsim_waiting_program exec/program/waiting_program.c)
add_dependencies(ptxsim_waiting_program ptxsim_cuda)
target_link_libraries(ptxsim_waiting_program PRIVATE ptxsim_flags -L${PTXSIM_OUTPUT_FOLDER}/lib/ptxsim -l:libcuda.so.1
  -Wl,--allow-shlib-undefined)
add_dependencies(test_ptxsim_exec ptxsim_driver_program ptxsim_waiting_program)
target_compile_definitions(test_ptxsim_exec PRIVATE PTXSIM_BINARY="$<TARGET_FILE:ptxsim>"
  PTXSIM_DRIVER_PROGRAM="$<TARGET_FILE:ptxsim_driver_program>"
  PTXSIM_WAITING_PROGRAM="$<TARGET_FILE:ptxsim_waiting_program>"
  PTXSIM_PARAMETERS="${PROJECT_SOURCE_DIR}/src/timing/gpus/b200.json")

find_program(PTXSIM_NVCC nvcc PATHS /usr/local/cuda/bin)
if(NOT PTXSIM_NVCC)
  return()
endif()
cmake_path(GET PTXSIM_NVCC PARENT_PATH cuda_folder)
find_path(PTXSIM_CUDA_HEADERS cuda_runtime_api.h HINTS ${cuda_folder}/../include)
if(PTXSIM_CUDA_HEADERS)
  target_include_directories(test_ptxsim_exec SYSTEM PRIVATE ${PTXSIM_CUDA_HEADERS})
  target_compile_definitions(test_ptxsim_exec PRIVATE PTXSIM_HAS_CUDA_HEADERS)
endif()
set(folder ${CMAKE_CURRENT_BINARY_DIR}/exec)
file(MAKE_DIRECTORY ${folder})
set(source_folder ${CMAKE_CURRENT_SOURCE_DIR}/exec/program)
set(flags -std=c++17 -O1 -lineinfo -Wno-deprecated-gpu-targets)
set(ptx_of_two -gencode=arch=compute_90a,code=compute_90a -gencode=arch=compute_100a,code=compute_100a)
set(objects "")
foreach(part main memory module nodes copies conditions graph_memory mapped_memory host_latch processes streams kernels errors overlap repeats groups convolution texture texture_shapes surface)
  set(object ${folder}/${part}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${PTXSIM_NVCC} ${flags} ${ptx_of_two} -c -o ${object} ${source_folder}/${part}.cu
    DEPENDS ${source_folder}/${part}.cu ${source_folder}/program.hpp ${source_folder}/texture.hpp VERBATIM
    COMMENT "PTX of ptxsim exec's ${part}.cu")
  list(APPEND objects ${object})
endforeach()
foreach(runtime static shared)
  add_custom_command(OUTPUT ${folder}/program_${runtime}
    COMMAND ${PTXSIM_NVCC} ${ptx_of_two} -cudart ${runtime} -o ${folder}/program_${runtime} ${objects}
    DEPENDS ${objects} VERBATIM COMMENT "Linking ptxsim exec's program, -cudart ${runtime}")
endforeach()
add_custom_command(OUTPUT ${folder}/program_stripped
  COMMAND ${CMAKE_STRIP} -o ${folder}/program_stripped ${folder}/program_static
  DEPENDS ${folder}/program_static VERBATIM)
add_custom_command(OUTPUT ${folder}/machine_code
  COMMAND ${PTXSIM_NVCC} ${flags} -gencode=arch=compute_90,code=sm_90 -o ${folder}/machine_code
    ${source_folder}/machine_code.cu
  DEPENDS ${source_folder}/machine_code.cu VERBATIM COMMENT "Machine code of ptxsim exec's machine_code.cu")
add_custom_command(OUTPUT ${folder}/libkernel.so
  COMMAND ${PTXSIM_NVCC} ${flags} ${ptx_of_two} -Xcompiler=-fPIC -shared -o ${folder}/libkernel.so
    ${source_folder}/library.cu
  DEPENDS ${source_folder}/library.cu VERBATIM COMMENT "Library of ptxsim exec's library.cu")
add_custom_command(OUTPUT ${folder}/with_library
  COMMAND ${CMAKE_C_COMPILER} -o ${folder}/with_library ${source_folder}/library_user.c ${folder}/libkernel.so
    -Wl,-rpath,${folder}
  DEPENDS ${source_folder}/library_user.c ${folder}/libkernel.so VERBATIM)
# Linked with NVIDIA's cuBLAS, where it is there; it runs with the stand-in.
set(blas_program "")
find_library(PTXSIM_CUBLAS cublas HINTS ${cuda_folder}/../lib64 ${cuda_folder}/../lib)
if(PTXSIM_CUDA_HEADERS AND PTXSIM_CUBLAS)
  set(blas_program ${folder}/blas)
  cmake_path(GET PTXSIM_CUBLAS PARENT_PATH cublas_folder)
  add_custom_command(OUTPUT ${blas_program}
    COMMAND ${PTXSIM_NVCC} ${flags} ${ptx_of_two} -o ${blas_program} ${source_folder}/blas.cu
      ${source_folder}/blas_factors.cu -L${cublas_folder} -lcublas
      -lcublasLt -ldl
    DEPENDS ${source_folder}/blas.cu ${source_folder}/blas_factors.cu ${source_folder}/blas_factors.hpp VERBATIM COMMENT "Program of ptxsim exec's blas.cu")
  target_compile_definitions(test_ptxsim_exec PRIVATE PTXSIM_NVCC_BLAS="${blas_program}")
endif()
add_custom_target(ptxsim_exec_programs
  DEPENDS ${folder}/program_static ${folder}/program_shared ${folder}/program_stripped ${folder}/with_library
  ${folder}/machine_code ${blas_program})
add_dependencies(test_ptxsim_exec ptxsim_exec_programs)
target_compile_definitions(test_ptxsim_exec PRIVATE PTXSIM_NVCC_PROGRAM="${folder}/program_static"
  PTXSIM_NVCC_PROGRAM_SHARED="${folder}/program_shared" PTXSIM_NVCC_PROGRAM_STRIPPED="${folder}/program_stripped"
  PTXSIM_NVCC_WITH_LIBRARY="${folder}/with_library" PTXSIM_NVCC_MACHINE_CODE="${folder}/machine_code")
