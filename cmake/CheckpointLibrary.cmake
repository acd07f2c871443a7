# The libraries that read checkpoints, dualgemm::checkpoint (shared) and dualgemm::checkpoint_static, for users of
# include/dualgemm/checkpoint.{hpp,h}: the layer src/checkpoint. They need the core library and nothing else.
function(dualgemm_add_checkpoint_libraries)
  foreach(kind shared static)
    set(target dualgemm_checkpoint_${kind})
    string(TOUPPER ${kind} library_kind)
    add_library(${target} ${library_kind} $<TARGET_OBJECTS:dualgemm_checkpoint>)
    target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
    target_compile_features(${target} INTERFACE cxx_std_20)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:dualgemm_flags> $<BUILD_INTERFACE:dualgemm_fmt>)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME dualgemm_checkpoint LINKER_LANGUAGE CXX)
  endforeach()
  target_link_libraries(dualgemm_checkpoint_shared PUBLIC dualgemm)
  target_link_libraries(dualgemm_checkpoint_static PUBLIC dualgemm_static)
  add_library(dualgemm::checkpoint ALIAS dualgemm_checkpoint_shared)
  add_library(dualgemm::checkpoint_static ALIAS dualgemm_checkpoint_static)
  set_target_properties(dualgemm_checkpoint_shared PROPERTIES EXPORT_NAME checkpoint
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  set_target_properties(dualgemm_checkpoint_static PROPERTIES EXPORT_NAME checkpoint_static)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT DUALGEMM_SANITIZE)
    set(symbols ${PROJECT_SOURCE_DIR}/cmake/dualgemm_checkpoint.map)
    target_link_options(dualgemm_checkpoint_shared PRIVATE LINKER:--version-script=${symbols} LINKER:--no-undefined)
    set_target_properties(dualgemm_checkpoint_shared PROPERTIES LINK_DEPENDS ${symbols} INSTALL_RPATH "$ORIGIN")
  endif()
endfunction()

# Component "checkpoint": cmake --install BUILD --component checkpoint. The core library is another.
function(dualgemm_install_checkpoint)
  if(NOT TARGET dualgemm_checkpoint_shared)
    return()
  endif()
  install(TARGETS dualgemm_checkpoint_shared EXPORT dualgemmTargets DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT checkpoint INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(TARGETS dualgemm_checkpoint_static EXPORT dualgemmStaticTargets DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT checkpoint INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  add_dependencies(dualgemm_installed dualgemm_checkpoint_shared dualgemm_checkpoint_static)
  # From the .pc file to the prefix, so that the package may be moved: one ".." for each folder of lib/pkgconfig.
  string(REGEX REPLACE "[^/]+" ".." DUALGEMM_PC_UP "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/dualgemm_checkpoint.pc.in ${PROJECT_BINARY_DIR}/dualgemm_checkpoint.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/dualgemm_checkpoint.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT checkpoint)
endfunction()
