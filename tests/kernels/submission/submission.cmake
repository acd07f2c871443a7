# test_submission: the CUDA text of a submission for each architecture as PTX, which ptxsim runs, and in a library, whose
# host part the tests ask. Its kernels are empty there, as for any other GPU: no test runs them.
find_package(Python3 COMPONENTS Interpreter)
if(NOT Python3_Interpreter_FOUND)
  return()
endif()
set(submission_folder ${PROJECT_BINARY_DIR}/submission)
set(submission_files "")
foreach(architecture 90a 100a)
  set(text ${submission_folder}/sm${architecture}.cu)
  set(library ${submission_folder}/sm${architecture}.so)
  set(ptx ${PROJECT_BINARY_DIR}/ptx/submission_sm${architecture}.ptx)
  add_custom_command(OUTPUT ${text}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/make_submission --arch sm_${architecture} --out ${text}
      --cuda-only ${text}.d
    DEPENDS ${PROJECT_SOURCE_DIR}/scripts/make_submission ${PROJECT_SOURCE_DIR}/scripts/submission/expand.py
      ${PROJECT_SOURCE_DIR}/scripts/submission/flatten.py ${PROJECT_SOURCE_DIR}/scripts/submission/errors.py
    DEPFILE ${text}.d VERBATIM COMMENT "CUDA text of a submission for sm_${architecture}")
  set(flags -std=c++20 -O3 --diag-suppress=2810,177)  # 177: what only the instances use that are left out
  if(DUALGEMM_WERROR)
    list(APPEND flags --Werror=all-warnings)
  endif()
  add_custom_command(OUTPUT ${ptx}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/ptx
    COMMAND ${CMAKE_CUDA_COMPILER} ${flags} -arch=sm_${architecture} -ptx -o ${ptx} ${text}
    DEPENDS ${text} VERBATIM COMMENT "PTX of a submission for sm_${architecture}")
  if(DUALGEMM_WERROR)
    list(APPEND flags -Xcompiler=-Wall,-Wextra,-Werror)
  endif()
  add_custom_command(OUTPUT ${library}
    COMMAND ${CMAKE_CUDA_COMPILER} ${flags} -gencode=arch=compute_80,code=compute_80
      -Xcompiler=-fPIC,-fvisibility=hidden -shared -I${CMAKE_CURRENT_SOURCE_DIR}
      -DDUALGEMM_SUBMISSION_TEXT="${text}" -o ${library} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/submission/probe.cu
    DEPENDS ${text} ${CMAKE_CURRENT_SOURCE_DIR}/kernels/submission/probe.cu
      ${CMAKE_CURRENT_SOURCE_DIR}/kernels/submission/probe.hpp
    VERBATIM COMMENT "Host part of a submission for sm_${architecture}")
  list(APPEND submission_files ${ptx} ${library})
endforeach()
add_custom_target(dualgemm_submission_text DEPENDS ${submission_files})

set(layers_submission cuda core plan reference)
dualgemm_add_test_folder(kernels/submission)
target_link_libraries(test_submission PRIVATE dualgemm_test_simulation ptxsim_lib ptxsim_case ${CMAKE_DL_LIBS})
target_compile_definitions(test_submission PRIVATE DUALGEMM_SUBMISSION_FOLDER="${submission_folder}")
add_dependencies(test_submission dualgemm_submission_text)
