# dualgemm_fmt: fmt for this project's targets. As an archive where there is one that fits into a shared library: with
# header-only fmt every source takes 3 s longer to compile (0.5 s instead of 3.3 s, g++ 12 -O3). Either way users of the
# installed libraries need no fmt: the shared one has it inside, the static one gets its objects (DUALGEMM_FMT_OBJECTS).
include(CheckCXXSourceCompiles)

macro(dualgemm_find_fmt)
  find_package(fmt REQUIRED)
  add_library(dualgemm_fmt INTERFACE)
  find_library(DUALGEMM_FMT_ARCHIVE libfmt.a)
  if(DUALGEMM_FMT_ARCHIVE)
    set(CMAKE_REQUIRED_FLAGS "-std=c++20 -fPIC")
    set(CMAKE_REQUIRED_LINK_OPTIONS -shared -Wl,--no-undefined)
    set(CMAKE_REQUIRED_LIBRARIES ${DUALGEMM_FMT_ARCHIVE})
    check_cxx_source_compiles("#include <fmt/format.h>
      std::string text(double x) { return fmt::format(\"{}\", x); }
      int main() {}" DUALGEMM_FMT_ARCHIVE_FITS)
    unset(CMAKE_REQUIRED_FLAGS)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    unset(CMAKE_REQUIRED_LIBRARIES)
  endif()
  set(DUALGEMM_FMT_OBJECTS "")
  if(DUALGEMM_FMT_ARCHIVE_FITS)
    target_link_libraries(dualgemm_fmt INTERFACE ${DUALGEMM_FMT_ARCHIVE})
    set(objects_dir ${PROJECT_BINARY_DIR}/fmt_objects)
    file(MAKE_DIRECTORY ${objects_dir})
    execute_process(COMMAND ${CMAKE_AR} x ${DUALGEMM_FMT_ARCHIVE} WORKING_DIRECTORY ${objects_dir}
      COMMAND_ERROR_IS_FATAL ANY)
    file(GLOB DUALGEMM_FMT_OBJECTS ${objects_dir}/*.o)
  else()
    target_link_libraries(dualgemm_fmt INTERFACE fmt::fmt-header-only)
  endif()
endmacro()
