# ptxsim_fmt: fmt for ptxsim's targets, compiled once. Header-only fmt costs every source that formats 3 s, and Debian has
# no archive of it. A project that includes this one and has compiled
# fmt already defines the target first.
# Users of the installed library need no fmt: it carries PTXSIM_FMT_OBJECTS. `ptxsim exec`'s library has it inside and hides
# it from the programs that load it, as it hides all but CUDA's names (src/fake_cuda/exports.map).
macro(ptxsim_find_fmt)
  if(NOT TARGET ptxsim_fmt)
    find_package(fmt REQUIRED)
    add_library(ptxsim_fmt INTERFACE)
    set(PTXSIM_FMT_OBJECTS "")
    if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)  # what fmt_instances.cpp is written for
      get_target_property(fmt_include_dirs fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
      add_library(ptxsim_fmt_archive STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt_instances.cpp)
      set_target_properties(ptxsim_fmt_archive PROPERTIES POSITION_INDEPENDENT_CODE ON)
      target_include_directories(ptxsim_fmt_archive SYSTEM PUBLIC ${fmt_include_dirs})
      target_link_libraries(ptxsim_fmt_archive PRIVATE ptxsim_flags)
      target_link_libraries(ptxsim_fmt INTERFACE ptxsim_fmt_archive)
      set(PTXSIM_FMT_OBJECTS $<TARGET_OBJECTS:ptxsim_fmt_archive>)
    else()
      target_link_libraries(ptxsim_fmt INTERFACE fmt::fmt-header-only)
    endif()
  endif()
endmacro()
