# cmake --install build/release [--prefix DIR]: the program, its licence and its pages.
include(GNUInstallDirs)
if(TARGET octavo)
  install(TARGETS octavo RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES LICENSE THIRD_PARTY README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} OPTIONAL)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
