# cmake --install build/release [--prefix DIR]: the program; the library of src/llm/llm.h with its headers and what
# find_package(octavo) and pkg-config need; licences, pages and examples.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
include(${CMAKE_CURRENT_LIST_DIR}/public_headers.cmake)

set(header_folder ${CMAKE_INSTALL_INCLUDEDIR}/octavo)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/octavo)

if(TARGET octavo)
  install(TARGETS octavo RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

octavo_public_headers(headers llm/llm.h)
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES src/${header} DESTINATION ${header_folder}/${folder})
endforeach()

# Users before used, as a linker wants static libraries.
octavo_folders_of(folders octavo_llm)
set(archives "")
foreach(folder ${folders})
  install(TARGETS octavo_${folder} EXPORT octavo ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${header_folder})
  get_target_property(type octavo_${folder} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    string(APPEND archives " -loctavo_${folder}")
  endif()
endforeach()
install(EXPORT octavo NAMESPACE octavo:: FILE octavo-targets.cmake DESTINATION ${package_folder})

configure_package_config_file(cmake/octavo-config.cmake.in ${PROJECT_BINARY_DIR}/generated/octavo-config.cmake
  INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/octavo-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/octavo-config.cmake
  ${PROJECT_BINARY_DIR}/generated/octavo-config-version.cmake DESTINATION ${package_folder})

# The file finds its prefix from where it lies, so that what was installed may be moved.
file(RELATIVE_PATH to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/octavo.pc.in ${PROJECT_BINARY_DIR}/generated/octavo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/octavo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# In the order of the checkout, so that links between pages hold.
install(FILES LICENSE THIRD_PARTY README.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
