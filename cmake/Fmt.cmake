# dualgemm_fmt: fmt for this project's targets, compiled once. Header-only fmt costs every source that formats 3 s (0.5 s
# instead of 3.3 s, g++ 12 -O3), and Debian has no archive of it. Either way users of the installed libraries need no fmt:
# the shared library has it inside and hides it, the static one carries its object.
macro(dualgemm_find_fmt)
  find_package(fmt REQUIRED)
  add_library(dualgemm_fmt INTERFACE)
  set(DUALGEMM_FMT_OBJECTS "")
  if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)  # what fmt_instances.cpp is written for
    get_target_property(fmt_include_dirs fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
    add_library(dualgemm_fmt_archive STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt_instances.cpp)
    set_target_properties(dualgemm_fmt_archive PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(dualgemm_fmt_archive SYSTEM PUBLIC ${fmt_include_dirs})
    target_link_libraries(dualgemm_fmt_archive PRIVATE dualgemm_flags)
    target_link_libraries(dualgemm_fmt INTERFACE dualgemm_fmt_archive)
    set(DUALGEMM_FMT_OBJECTS $<TARGET_OBJECTS:dualgemm_fmt_archive>)
  else()
    target_link_libraries(dualgemm_fmt INTERFACE fmt::fmt-header-only)
  endif()
endmacro()
