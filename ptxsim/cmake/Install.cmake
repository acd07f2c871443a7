# Installation: public headers, the library ptxsim::ptxsim, the command with lib/ptxsim, which `ptxsim exec` looks for
# beside it, the CMake package, the schema of reports and the documents. All of it may be moved afterwards: no file holds
# the prefix.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

function(ptxsim_install)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ptxsim)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ptxsim DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/schema/reports.json DESTINATION ${CMAKE_INSTALL_DATADIR}/ptxsim/schema)
  install(TARGETS ptxsim_static EXPORT ptxsimTargets DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ptxsimTargets NAMESPACE ptxsim:: DESTINATION ${package_dir})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ptxsimConfig.cmake.in
    ${PROJECT_BINARY_DIR}/ptxsimConfig.cmake INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/ptxsimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/ptxsimConfig.cmake ${PROJECT_BINARY_DIR}/ptxsimConfigVersion.cmake
    DESTINATION ${package_dir})
  if(TARGET ptxsim)
    install(TARGETS ptxsim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  if(TARGET ptxsim_cuda)
    # ../lib/ptxsim from the command, whatever the system calls its folder of libraries.
    cmake_path(SET folder NORMALIZE "${CMAKE_INSTALL_BINDIR}/../lib/ptxsim")
    get_target_property(stand_ins ptxsim_cuda PTXSIM_STAND_INS)
    install(TARGETS ptxsim_cuda ${stand_ins} LIBRARY DESTINATION ${folder})
    install(FILES ${PTXSIM_OUTPUT_FOLDER}/lib/ptxsim/libcuda.so.1 DESTINATION ${folder})
    install(FILES ${PROJECT_SOURCE_DIR}/src/fake_cuda/python/sitecustomize.py DESTINATION ${folder}/python)
  endif()
endfunction()
