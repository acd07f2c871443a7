# What needs the library below `ptxsim exec`: its command, its tests and its probes of a GPU. Their names and their label are
# those of ptxsim's own tests of such programs.
# The command dualgemm as it is installed, its kernels by the PTX that their tests have.
if(TARGET dualgemm_cli AND DUALGEMM_CUDA_FOUND)
  set(substitutes "")
  foreach(kernel convert_scales dequantize_tensor dual_gemm_sm100a dual_gemm_sm100a_pair dual_gemm_sm100a_pair_groups
      dual_gemm_sm100a_pair_persistent dual_gemm_sm100a_pair_prepared dual_gemm_sm100a_skinny dual_gemm_sm100a_skinny_groups
      dual_gemm_sm100a_skinny_prepared dual_gemm_sm100a_w4a16 dual_gemm_sm100a_w4a16_groups dual_gemm_sm120a dual_gemm_sm80 dual_gemm_sm80_prepared
      dual_gemm_sm90a dual_gemm_sm90a_groups dual_gemm_sm90a_sequential dual_gemm_sm90a_skinny dual_gemm_sm90a_skinny_groups dual_gemm_sm90a_skinny_many
      group_tiles pack_weights_sm100a pack_weights_sm120a pack_weights prepare_sm90a quantize quantize_rows repack)
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
  foreach(way "e2m1;--prepared" "e2m1;--scale-layout;swizzled_128x4;--d-type;e2m1" "bf16;--prepared")
    string(REGEX REPLACE "[;-]" "" name "${way}")
    add_test(NAME ptxsim_exec.dualgemm_rtx5090_${name}
      COMMAND ptxsim exec --device rtx5090 ${substitutes} -- $<TARGET_FILE:dualgemm_cli> verify --device cuda
        -m 1,40,300 -n 144 -k 272 -l 1,2 --strategies fused --a-type ${way})
    set_tests_properties(ptxsim_exec.dualgemm_rtx5090_${name} PROPERTIES LABELS ptxsim_exec
      TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  endforeach()
  # Bad input, and a recorded graph of groups whose counts change.
  add_test(NAME ptxsim_exec.bad_input_rtx5090 COMMAND ptxsim exec --device rtx5090 ${substitutes} --
    $<TARGET_FILE:test_cuda> --gtest_filter=*BadInput*:*GroupsOnGpu.ARecordedGraph*/mmanvf4_t64_prepared)
  set_tests_properties(ptxsim_exec.bad_input_rtx5090 PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  foreach(device b200 h200 rtx5090 gb10)
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
    add_test(NAME ptxsim_exec.experts_${device} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/ptxsim_exec/experts.sh
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
  # The same for an RTX 50, by the page's own command; any other GPU refuses it.
  add_test(NAME ptxsim_exec.rtx50_day COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/ptxsim_exec/rtx50_day.sh
    ${PROJECT_SOURCE_DIR}/docs/rtx50_day.md ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/rtx50_day)
  string(JOIN " " through $<TARGET_FILE:ptxsim> exec --device h200 --)
  add_test(NAME ptxsim_exec.rtx50_day_refused COMMAND ${PROJECT_SOURCE_DIR}/scripts/rtx50_day --brief
    --out ${CMAKE_CURRENT_BINARY_DIR}/rtx50_day_refused --programs $<TARGET_FILE_DIR:bench_probes> --through "${through}")
  set_tests_properties(ptxsim_exec.rtx50_day ptxsim_exec.rtx50_day_refused PROPERTIES LABELS ptxsim_exec
    TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  set_tests_properties(ptxsim_exec.rtx50_day_refused PROPERTIES
    PASS_REGULAR_EXPRESSION "device: NVIDIA H200; needs compute capability 12.0 or 12.1")
  foreach(device b200 h200 rtx5090)
    add_test(NAME ptxsim_exec.bench_probes_${device}
      COMMAND ptxsim exec --strict --device ${device} -- $<TARGET_FILE:bench_probes> --brief)
    set_tests_properties(ptxsim_exec.bench_probes_${device} PROPERTIES LABELS ptxsim_exec TIMEOUT ${DUALGEMM_TEST_TIMEOUT})
  endforeach()
endif()
