# The manual page, which the program itself writes, and its bash completion. A program for another processor cannot be
# asked, and one under a sanitizer is not for users.
if(CMAKE_CROSSCOMPILING OR QKV_SANITIZE)
  return()
endif()
find_program(QKV_GZIP_PROGRAM gzip REQUIRED)
set(manual ${PROJECT_BINARY_DIR}/qkv.1)
add_custom_command(TARGET qkv_program POST_BUILD COMMAND qkv_program help --man > ${manual}
                   COMMAND ${QKV_GZIP_PROGRAM} -9nfk ${manual} BYPRODUCTS ${manual} ${manual}.gz)
install(FILES ${manual}.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
install(FILES cmake/qkv-completion.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME qkv
        COMPONENT program)
