# octavo_check_headers(): every header of src/ and tests/ compiles on its own. One with a .cc beside it has been shown to:
# that file includes it first (tests/layers_test.py sees to it). The others are compiled here, each from a generated
# file that includes it twice, which also tries its include guard. What lies in kernels/cpu/ is not headers but pieces that
# the file of each instruction set includes once, inside its unnamed namespace.
function(octavo_check_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h ${PROJECT_SOURCE_DIR}/tests/*.h)
  list(FILTER headers EXCLUDE REGEX "/src/kernels/cpu/")
  set(generated "")
  foreach(header ${headers})
    string(REGEX REPLACE "\\.h$" ".cc" source ${header})
    if(NOT EXISTS ${source})
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${header})
      set(file ${PROJECT_BINARY_DIR}/generated/headers/${name}.cc)
      file(CONFIGURE OUTPUT ${file} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
      list(APPEND generated ${file})
    endif()
  endforeach()
  add_library(header_check OBJECT ${generated})
  target_include_directories(header_check PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(header_check PRIVATE fmt::fmt tl::expected nlohmann_json::nlohmann_json PkgConfig::PCRE2
    PkgConfig::UTF8PROC GTest::gtest)
  target_compile_options(header_check PRIVATE -O0)
endfunction()
