# One static library and one test program per folder of src/. Sources are found by name: x.cc belongs to the
# library, x_test.cc to the tests.

find_program(CCACHE ccache)
if(CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # The base folder makes paths relative, so that a second checkout finds what the first compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

set(werror "")
if(OCTAVO_WERROR)
  set(werror -Werror)
endif()
add_compile_options(-Wall -Wextra -Wshadow ${werror} -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports overlaps inside std::string's own append that cannot be (its bug 105651).
  add_compile_options(-Wno-restrict)
endif()
if(OCTAVO_SANITIZE)
  add_compile_options(-fsanitize=${OCTAVO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
  add_link_options(-fsanitize=${OCTAVO_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND OCTAVO_SANITIZE STREQUAL "address,undefined")
    # As two shared libraries, the second of them writes its reports nowhere but to stderr (tests/support/watch_sanitizers.py).
    add_link_options(-static-libasan -static-libubsan)
  endif()
endif()

# The instruction sets of this machine for which tests are run, by the names OCTAVO_ISA takes.
set(OCTAVO_TEST_ISAS ref)
file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
if(cpu_flags MATCHES " avx2 " AND cpu_flags MATCHES " fma " AND cpu_flags MATCHES " f16c ")
  list(APPEND OCTAVO_TEST_ISAS avx2)
endif()
if(cpu_flags MATCHES " avx512bw " AND cpu_flags MATCHES " avx512vl " AND cpu_flags MATCHES " avx512_vnni ")
  list(APPEND OCTAVO_TEST_ISAS avx512)
endif()

# octavo_folder(NAME [DEPS folder-or-target...] [PER_ISA] [TEST_DEPS folder...])
function(octavo_folder name)
  cmake_parse_arguments(arg "PER_ISA" "" "DEPS;TEST_DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
  list(REMOVE_ITEM sources ${tests} "")
  if(sources)
    add_library(octavo_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(octavo_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(octavo::${name} ALIAS octavo_${name})
  set_target_properties(octavo_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(octavo_${name} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  # Whoever includes a header needs the language, too, whatever the default of its own project.
  target_compile_features(octavo_${name} ${scope} cxx_std_20)
  target_link_libraries(octavo_${name} ${scope} ${arg_DEPS})
  if(OCTAVO_TESTS AND tests)
    set(per_isa "")
    if(arg_PER_ISA)
      set(per_isa PER_ISA)
    endif()
    octavo_test(${name}_test ${per_isa} SOURCES ${tests} DEPS octavo_${name} ${arg_TEST_DEPS})
  endif()
endfunction()

# octavo_test(NAME [PER_ISA|FAST_ISAS] SOURCES ... DEPS ...): a GoogleTest program, run once per instruction set if
# PER_ISA; FAST_ISAS leaves out ref, which would take minutes on a real model, unless the machine has nothing else.
function(octavo_test name)
  cmake_parse_arguments(arg "PER_ISA;FAST_ISAS" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gtest GTest::gtest_main)
  # g++ 12 at -O3 takes vectors inside the tables of tests for uninitialised.
  target_compile_options(${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-maybe-uninitialized>)
  # Instrumented tests take twice as long to compile with optimisation and full debug information; the parts keep both.
  if(OCTAVO_SANITIZE)
    target_compile_options(${name} PRIVATE -O0 -g1)
  endif()
  target_compile_definitions(${name} PRIVATE
    OCTAVO_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
    OCTAVO_TEST_UNPACKED="${PROJECT_BINARY_DIR}/test_data"
    OCTAVO_BINARY="${PROJECT_BINARY_DIR}/bin/octavo")
  set(isas ${OCTAVO_TEST_ISAS})
  if(arg_FAST_ISAS AND NOT isas STREQUAL "ref")
    list(REMOVE_ITEM isas ref)
  endif()
  if(arg_PER_ISA OR arg_FAST_ISAS)
    foreach(isa ${isas})
      add_test(NAME ${name}.${isa} COMMAND ${name})
      set_tests_properties(${name}.${isa} PROPERTIES ENVIRONMENT OCTAVO_ISA=${isa} LABELS per_isa)
    endforeach()
  else()
    add_test(NAME ${name} COMMAND ${name})
  endif()
endfunction()
