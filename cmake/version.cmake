# octavo_version(TARGET): adds base/version.h's answers to TARGET. They are looked up at every build, not when it is
# configured, and a new commit recompiles this one small file only.
function(octavo_version target)
  set(output ${PROJECT_BINARY_DIR}/generated/version.cc)
  set(build_type ${CMAKE_BUILD_TYPE})
  if(OCTAVO_SANITIZE)
    string(APPEND build_type " (${OCTAVO_SANITIZE})")
  endif()
  add_custom_target(${target}_version
    COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D OUTPUT=${output} -D VERSION=${PROJECT_VERSION}
      -D "COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -D "BUILD_TYPE=${build_type}"
      -P ${PROJECT_SOURCE_DIR}/cmake/write_version.cmake
    BYPRODUCTS ${output} VERBATIM
    COMMENT "Looking up the commit")
  target_sources(${target} PRIVATE ${output})
  add_dependencies(${target} ${target}_version)
endfunction()
