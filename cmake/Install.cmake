# Installation: headers, the libraries, the command with its man page and completions, the CMake package, pkg-config
# files, documents and examples. All of it may be moved afterwards: no file holds the prefix.
include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/CheckpointLibrary.cmake)

# dualgemm_install_library(<name> <export set> <export set of the static one> [DESCRIPTION <text>] [REQUIRES <modules>])
# installs <name> (shared), <name>_static and <name>.pc. Static libraries are exported apart: they need threads,
# and CUDA's runtime if they have a CUDA part, at link time; users of the shared ones need nothing.
function(dualgemm_install_library name shared static)
  cmake_parse_arguments(ARG "" "DESCRIPTION;REQUIRES" "" ${ARGN})
  install(TARGETS ${name} EXPORT ${shared} DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(TARGETS ${name}_static EXPORT ${static} DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  add_dependencies(dualgemm_installed ${name} ${name}_static)

  set(DUALGEMM_PC_NAME ${name})
  set(DUALGEMM_PC_DESCRIPTION ${ARG_DESCRIPTION})
  set(DUALGEMM_PC_REQUIRES ${ARG_REQUIRES})
  # ${pcfiledir}, where pkg-config found the file, goes back to the prefix by so many steps.
  file(RELATIVE_PATH DUALGEMM_PC_UP /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  set(DUALGEMM_PC_PRIVATE "-lstdc++ -lm -lpthread")
  if(DUALGEMM_CUDA_FOUND)
    string(APPEND DUALGEMM_PC_PRIVATE " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -ldl")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/dualgemm.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

# The command, and what it says of itself: its man page, and completions where each shell looks for them.
function(dualgemm_install_command)
  install(TARGETS dualgemm_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/tools/cli/gpus.json DESTINATION ${CMAKE_INSTALL_DATADIR}/dualgemm)
  add_dependencies(dualgemm_installed dualgemm_cli)
  if(NOT TARGET dualgemm_cli_texts)  # under a sanitizer the command prints none
    return()
  endif()
  add_dependencies(dualgemm_installed dualgemm_cli_texts)
  set(texts ${PROJECT_BINARY_DIR}/generated)
  install(FILES ${texts}/dualgemm.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${texts}/dualgemm.bash RENAME dualgemm
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${texts}/_dualgemm DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${texts}/dualgemm.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endfunction()

function(dualgemm_install)
  # What `make install` builds before it copies: not the tests, benchmarks and examples.
  add_custom_target(dualgemm_installed)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dualgemm)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/dualgemm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
    PATTERN CMakeLists.txt EXCLUDE)
  # Documents link to ptxsim's, which `cmake -S ptxsim` installs by itself.
  install(FILES ${PROJECT_SOURCE_DIR}/ptxsim/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/ptxsim)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/ptxsim/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}/ptxsim)
  if(TARGET dualgemm_cli)
    dualgemm_install_command()
  endif()
  if(NOT TARGET dualgemm)
    return()
  endif()

  dualgemm_install_library(dualgemm dualgemmTargets dualgemmStaticTargets DESCRIPTION "${PROJECT_DESCRIPTION}")
  dualgemm_install_checkpoint()
  foreach(export dualgemmTargets dualgemmStaticTargets)
    install(EXPORT ${export} NAMESPACE dualgemm:: DESTINATION ${package_dir})
  endforeach()
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/dualgemmConfig.cmake.in
    ${PROJECT_BINARY_DIR}/dualgemmConfig.cmake INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/dualgemmConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/dualgemmConfig.cmake
    ${PROJECT_BINARY_DIR}/dualgemmConfigVersion.cmake DESTINATION ${package_dir})
endfunction()
