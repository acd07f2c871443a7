# The stand-in for CUDA, and programs below `ptxsim exec`: a C program of the driver's interface everywhere, nvcc's where
# there is an nvcc.
dualgemm_add_test_folder(ptxsim/exec ptxsim_exec)
target_link_libraries(test_ptxsim_exec PRIVATE ptxsim_cuda_parts ${PTXSIM_ZSTD} ${PTXSIM_LZ4})
target_include_directories(test_ptxsim_exec PRIVATE ${PTXSIM_ZSTD_INCLUDE} ${PTXSIM_LZ4_INCLUDE})
add_dependencies(test_ptxsim_exec ptxsim)

add_executable(ptxsim_driver_program ptxsim/exec/program/driver_program.c)
add_dependencies(ptxsim_driver_program ptxsim_cuda)
target_link_libraries(ptxsim_driver_program PRIVATE dualgemm_flags -L${PROJECT_BINARY_DIR}/lib/ptxsim -l:libcuda.so.1
  -Wl,--allow-shlib-undefined)
add_executable(ptxsim_waiting_program ptxsim/exec/program/waiting_program.c)
add_dependencies(ptxsim_waiting_program ptxsim_cuda)
target_link_libraries(ptxsim_waiting_program PRIVATE dualgemm_flags -L${PROJECT_BINARY_DIR}/lib/ptxsim -l:libcuda.so.1
  -Wl,--allow-shlib-undefined)
add_dependencies(test_ptxsim_exec ptxsim_driver_program ptxsim_waiting_program)
target_compile_definitions(test_ptxsim_exec PRIVATE PTXSIM_BINARY="$<TARGET_FILE:ptxsim>"
  PTXSIM_DRIVER_PROGRAM="$<TARGET_FILE:ptxsim_driver_program>"
  PTXSIM_WAITING_PROGRAM="$<TARGET_FILE:ptxsim_waiting_program>")

# This repository's own command as it is installed, its kernels by the PTX that their tests have.
if(TARGET dualgemm_cli AND DUALGEMM_CUDA_FOUND)
  set(substitutes "")
  foreach(kernel convert_scales dequantize_tensor dual_gemm_sm100a dual_gemm_sm100a_pair dual_gemm_sm100a_pair_groups
      dual_gemm_sm100a_pair_persistent dual_gemm_sm100a_pair_prepared dual_gemm_sm100a_skinny dual_gemm_sm100a_skinny_groups
      dual_gemm_sm100a_skinny_prepared dual_gemm_sm100a_w4a16 dual_gemm_sm100a_w4a16_groups dual_gemm_sm80
      dual_gemm_sm90a dual_gemm_sm90a_groups dual_gemm_sm90a_sequential dual_gemm_sm90a_skinny dual_gemm_sm90a_skinny_groups dual_gemm_sm90a_skinny_many
      group_tiles pack_weights_sm100a pack_weights_sm90a prepare_sm90a quantize quantize_rows repack)
    list(APPEND substitutes --ptx ${PROJECT_BINARY_DIR}/ptx/${kernel}.ptx)
  endforeach()
  add_test(NAME ptxsim_exec.dualgemm_w4a16_b200
    COMMAND ptxsim exec --device b200 ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
      --a-type bf16 -m 1,40,150 -n 128 -k 512 -l 1,2 --strategies fused)
  set_tests_properties(ptxsim_exec.dualgemm_w4a16_b200 PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  foreach(way "contiguous;--a-type;bf16" "contiguous;--row-experts;--a-type;f16" "masked;--a-type;bf16;--prepared")
    string(REGEX REPLACE "[;-]" "" name "${way}")
    add_test(NAME ptxsim_exec.dualgemm_w4a16_b200_${name}
      COMMAND ptxsim exec --device b200 ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
        --grouping ${way} --config kernel=w4a16 -m 40 -n 80 -k 272 -l 1,4 --strategies fused)
    set_tests_properties(ptxsim_exec.dualgemm_w4a16_b200_${name} PROPERTIES LABELS ptxsim_exec
      TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  endforeach()
  # Up to 128 rows scales in tiles are for other kernels than scales in rows.
  foreach(type e2m1 bf16)
    add_test(NAME ptxsim_exec.dualgemm_b200_swizzled_${type}
      COMMAND ptxsim exec --device b200 ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
        --a-type ${type} --scale-layout swizzled_128x4 -m 1,20 -n 128 -k 320 -l 1,2 --strategies fused)
    set_tests_properties(ptxsim_exec.dualgemm_b200_swizzled_${type} PROPERTIES LABELS ptxsim_exec
      TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  endforeach()
  add_test(NAME ptxsim_exec.dualgemm_persistent_b200
    COMMAND ptxsim exec --device b200 ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
      --config kernel=tcgen05persistent,ctas=4 -m 300 -n 300 -k 512 -l 2 --strategies fused)
  set_tests_properties(ptxsim_exec.dualgemm_persistent_b200 PROPERTIES LABELS ptxsim_exec
    TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  foreach(way "contiguous" "contiguous;--row-experts;--prepared" "masked;--prepared")
    string(REGEX REPLACE "[;-]" "" name "${way}")
    add_test(NAME ptxsim_exec.dualgemm_pairs_b200_${name}
      COMMAND ptxsim exec --device b200 ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
        --grouping ${way} --config kernel=tcgen05persistent,ctas=4 -m 300 -n 140 -k 272 -l 1,4 --strategies fused)
    set_tests_properties(ptxsim_exec.dualgemm_pairs_b200_${name} PROPERTIES LABELS ptxsim_exec
      TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  endforeach()
  foreach(device b200 h200 rtx5090)
    set(rows 16,40)
    if(device STREQUAL "b200")
      set(rows 16,40,150)  # a pair of CTAs has more than 128
    endif()
    add_test(NAME ptxsim_exec.dualgemm_${device}
      COMMAND ptxsim exec --device ${device} ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
        -m ${rows} -n 128 -k 256 -l 1,2 --strategies fused,fused_sequential,fused_epilogue)
    set_tests_properties(ptxsim_exec.dualgemm_${device} PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
    foreach(way "contiguous" "contiguous;--row-experts" "masked")  # groups of experts, ragged, empty and single ones
      string(REPLACE ";" "" name "${way}")
      add_test(NAME ptxsim_exec.dualgemm_${device}_${name}
        COMMAND ptxsim exec --device ${device} ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
          --grouping ${way} -m 40 -n 80 -k 272 -l 1,4 --strategies fused)
      set_tests_properties(ptxsim_exec.dualgemm_${device}_${name} PROPERTIES LABELS ptxsim_exec
        TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
    endforeach()
  endforeach()
  # A B200 that runs fewer pairs of CTAs than it has pairs of SMs: another tile is taken, and without any, or by name, none.
  # <name>|<clusters>|<constraint>|<text>
  foreach(row "all|1000|isa=sm100a|_tcgen05pair_t256x64x256_" "few|40|isa=sm100a|_tcgen05_t128x64x256_"
      "none|0|isa=sm100a|_tcgen05_t128x64x256_"
      "refused|0|kernel=tcgen05pair|kernel=tcgen05pair. NVIDIA B200 runs no cluster of two CTAs with an SM for each")
    string(REPLACE "|" ";" row "${row}")
    list(GET row 0 name)
    list(GET row 1 clusters)
    list(GET row 2 constraint)
    list(GET row 3 text)
    add_test(NAME ptxsim_exec.pairs_${name}
      COMMAND ptxsim exec --device b200 --max-clusters ${clusters} ${substitutes} -- $<TARGET_FILE:dualgemm_cli> plan
        --device cuda -m 256 -n 4096 -k 7168 "--config=${constraint}")
    set_tests_properties(ptxsim_exec.pairs_${name} PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT}
      PASS_REGULAR_EXPRESSION "${text}")
  endforeach()
  # The smallest of the challenge's test shapes; the script does all ten.
  add_test(NAME ptxsim_exec.test_shape COMMAND ${CMAKE_COMMAND} -E env DUALGEMM_BUILD=${PROJECT_BINARY_DIR}
    ${PROJECT_SOURCE_DIR}/scripts/simulate_test_shapes 256,512,256)
  set_tests_properties(ptxsim_exec.test_shape PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT}
    PASS_REGULAR_EXPRESSION "1 shapes, 0 failed")
  # Prepared on the device, and taken from there, by the kernels for few rows, of pairs, and for 16-bit A.
  add_test(NAME ptxsim_exec.dualgemm_b200_prepared
    COMMAND ptxsim exec --device b200 ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
      -m 1,16,40,150 -n 136 -k 272 -l 1,2 --strategies fused --prepared)
  add_test(NAME ptxsim_exec.dualgemm_w4a16_b200_prepared
    COMMAND ptxsim exec --device b200 ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
      --a-type f16 -m 1,40 -n 136 -k 272 -l 1,2 --strategies fused --prepared)
  set_tests_properties(ptxsim_exec.dualgemm_b200_prepared ptxsim_exec.dualgemm_w4a16_b200_prepared PROPERTIES
    LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  # Prepared bytes wherever they lie, expert by expert, and refused where they do not fit.
  add_test(NAME ptxsim_exec.prepared_bytes_b200 COMMAND ptxsim exec --device b200 ${substitutes} --
    $<TARGET_FILE:test_cuda> --gtest_filter=Strategies/PreparedBytesOnGpu.*/fused)
  set_tests_properties(ptxsim_exec.prepared_bytes_b200 PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  # Groups of experts: a recorded graph whose counts change, and a layer of experts from a checkpoint.
  add_test(NAME ptxsim_exec.groups_b200 COMMAND ptxsim exec --device b200 ${substitutes} -- $<TARGET_FILE:test_cuda>
    --gtest_filter=*GroupsOnGpu.ARecordedGraph*/skinny_t16*:*GroupsOnGpu.ThePublicInterface/skinny_t16*)
  add_test(NAME ptxsim_exec.pair_groups_b200
    COMMAND ptxsim exec --device b200 ${substitutes} -- $<TARGET_FILE:test_cuda>
    --gtest_filter=*GroupsOnGpu.ARecordedGraph*/tcgen05persistent*:*GroupsOnGpu.ThePublicInterface/tcgen05persistent*)
  set_tests_properties(ptxsim_exec.groups_b200 ptxsim_exec.pair_groups_b200 PROPERTIES LABELS ptxsim_exec
    TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  foreach(device b200 h200)
    string(JOIN " " through $<TARGET_FILE:ptxsim> exec --device ${device} ${substitutes} --)
    add_test(NAME ptxsim_exec.experts_${device} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/ptxsim/exec/experts.sh
      $<TARGET_FILE:dualgemm_cli> ${CMAKE_CURRENT_BINARY_DIR}/experts_${device} "${through}")
    set_tests_properties(ptxsim_exec.experts_${device} PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  endforeach()
endif()

# The questions to a GPU: whether each asks what it means to. And the whole day with a GPU that is not there.
if(TARGET bench_probes)
  string(JOIN " " through $<TARGET_FILE:ptxsim> exec --device b200 ${substitutes} --)
  add_test(NAME ptxsim_exec.blackwell_day COMMAND ${PROJECT_SOURCE_DIR}/scripts/blackwell_day --brief
    --out ${CMAKE_CURRENT_BINARY_DIR}/blackwell_day --programs $<TARGET_FILE_DIR:bench_probes> --through "${through}")
  set_tests_properties(ptxsim_exec.blackwell_day PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT} COST 100)
  foreach(device b200 h200)
    add_test(NAME ptxsim_exec.bench_probes_${device}
      COMMAND ptxsim exec --strict --device ${device} -- $<TARGET_FILE:bench_probes> --brief)
    set_tests_properties(ptxsim_exec.bench_probes_${device} PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  endforeach()
endif()

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
set(folder ${CMAKE_CURRENT_BINARY_DIR}/ptxsim_exec)
file(MAKE_DIRECTORY ${folder})
set(source_folder ${CMAKE_CURRENT_SOURCE_DIR}/ptxsim/exec/program)
set(flags -std=c++17 -O1 -lineinfo -Wno-deprecated-gpu-targets)
set(ptx_of_two -gencode=arch=compute_90a,code=compute_90a -gencode=arch=compute_100a,code=compute_100a)
set(objects "")
foreach(part main memory module nodes copies conditions streams kernels errors overlap groups convolution texture texture_shapes surface)
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
    COMMAND ${PTXSIM_NVCC} ${flags} ${ptx_of_two} -o ${blas_program} ${source_folder}/blas.cu -L${cublas_folder} -lcublas
      -lcublasLt -ldl
    DEPENDS ${source_folder}/blas.cu VERBATIM COMMENT "Program of ptxsim exec's blas.cu")
  target_compile_definitions(test_ptxsim_exec PRIVATE PTXSIM_NVCC_BLAS="${blas_program}")
endif()
add_custom_target(ptxsim_exec_programs
  DEPENDS ${folder}/program_static ${folder}/program_shared ${folder}/program_stripped ${folder}/with_library
  ${folder}/machine_code ${blas_program})
add_dependencies(test_ptxsim_exec ptxsim_exec_programs)
target_compile_definitions(test_ptxsim_exec PRIVATE PTXSIM_NVCC_PROGRAM="${folder}/program_static"
  PTXSIM_NVCC_PROGRAM_SHARED="${folder}/program_shared" PTXSIM_NVCC_PROGRAM_STRIPPED="${folder}/program_stripped"
  PTXSIM_NVCC_WITH_LIBRARY="${folder}/with_library" PTXSIM_NVCC_MACHINE_CODE="${folder}/machine_code")
