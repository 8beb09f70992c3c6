# Run at every build (cmake -P): writes OUTPUT from version.cc.in, and touches it only if something changed.
# Given: SOURCE (the checkout), OUTPUT, VERSION, COMPILER, BUILD_TYPE.
set(COMMIT unknown)
find_program(GIT git)
if(GIT)
  # A checkout owned by another user (root builds, a user cloned) is ours to read all the same.
  set(git ${GIT} -c safe.directory=${SOURCE} -C ${SOURCE})
  execute_process(COMMAND ${git} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND ${git} rev-parse --short=12 --verify HEAD
    OUTPUT_VARIABLE head RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH ${SOURCE} source)
  # An unpacked archive may lie inside some other repository, whose commit says nothing about it.
  if(NOT failed AND top STREQUAL source)
    set(COMMIT ${head})
    execute_process(COMMAND ${git} diff --quiet HEAD RESULT_VARIABLE changed ERROR_QUIET)
    if(changed)
      string(APPEND COMMIT +changes)
    endif()
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/version.cc.in ${OUTPUT} @ONLY)
