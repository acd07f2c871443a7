# Installation: headers, both libraries, the command, the CMake package and the pkg-config file.
# The static library is exported apart: it needs OpenMP at link time, users of the shared one need nothing.
include(CMakePackageConfigHelpers)

function(dualgemm_install)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dualgemm)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/dualgemm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  if(TARGET dualgemm_cli)
    install(TARGETS dualgemm_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  if(NOT TARGET dualgemm)
    return()
  endif()

  set_target_properties(dualgemm_static PROPERTIES EXPORT_NAME dualgemm_static)
  install(TARGETS dualgemm EXPORT dualgemmTargets DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(TARGETS dualgemm_static EXPORT dualgemmStaticTargets DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  foreach(export dualgemmTargets dualgemmStaticTargets)
    install(EXPORT ${export} NAMESPACE dualgemm:: DESTINATION ${package_dir})
  endforeach()

  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/dualgemmConfig.cmake.in
    ${PROJECT_BINARY_DIR}/dualgemmConfig.cmake INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/dualgemmConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/dualgemmConfig.cmake
    ${PROJECT_BINARY_DIR}/dualgemmConfigVersion.cmake DESTINATION ${package_dir})

  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(DUALGEMM_PC_PRIVATE "-lomp -lstdc++ -lm -lpthread")
  else()
    set(DUALGEMM_PC_PRIVATE "-lgomp -lstdc++ -lm -lpthread")
  endif()
  if(DUALGEMM_CUDA_FOUND)
    string(APPEND DUALGEMM_PC_PRIVATE " -lcudart_static -lrt -ldl")
  endif()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/dualgemm.pc.in ${PROJECT_BINARY_DIR}/dualgemm.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/dualgemm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
