# Writes OUTPUT with the git revision of SOURCE_DIR, only when it differs, so that nothing is rebuilt in vain.
# cmake -DSOURCE_DIR=... -DOUTPUT=... -P revision.cmake
set(revision "unknown")
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE_DIR} describe --always --dirty=+ --exclude=*
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE result)
  if(result EQUAL 0 AND NOT described STREQUAL "")
    set(revision ${described})
  endif()
endif()
set(text "#define DUALGEMM_REVISION \"${revision}\"\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
