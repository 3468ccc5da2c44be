# Bundles web/ and hands the three files to the program (and two more to Python's notebooks); without npm the program shows a page that says why it is missing.
find_program(QKV_NPM npm)
find_program(QKV_NODE NAMES node nodejs)
set(page_dir ${PROJECT_BINARY_DIR}/page)
set(page_source ${PROJECT_SOURCE_DIR}/qkv/serve/page.cc)
if(QKV_NPM AND QKV_NODE)
  file(GLOB_RECURSE page_inputs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/src/*)
  if(NOT QKV_TESTS)
    set(page_modules --omit=dev)  # formatter, types and browser driver are large, and only the tests need them
  endif()
  set(page_files ${page_dir}/index.html ${page_dir}/app.js ${page_dir}/app.css)
  set(notebook_files ${page_dir}/notebook.js ${page_dir}/notebook.css)
  add_custom_command(
    OUTPUT ${page_dir}/modules.stamp
    COMMAND ${QKV_NPM} ci ${page_modules} --no-audit --no-fund --loglevel=error
    COMMAND ${CMAKE_COMMAND} -E make_directory ${page_dir}
    COMMAND ${CMAKE_COMMAND} -E touch ${page_dir}/modules.stamp
    DEPENDS ${PROJECT_SOURCE_DIR}/web/package-lock.json
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/web
    COMMENT "Fetching the page's modules")
  add_custom_command(
    OUTPUT ${page_files} ${notebook_files}
    COMMAND ${QKV_NODE} build.mjs ${page_dir}
    DEPENDS ${page_inputs} ${PROJECT_SOURCE_DIR}/web/build.mjs ${page_dir}/modules.stamp
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/web
    COMMENT "Bundling the page")
  add_custom_target(qkv_page DEPENDS ${page_files})
  add_dependencies(qkv_tools qkv_page)
  set_source_files_properties(${page_source} PROPERTIES OBJECT_DEPENDS "${page_files}"
                              COMPILE_DEFINITIONS "QKV_PAGE_DIR=\"${page_dir}\"")
else()
  message(STATUS "npm or node is missing: 'qkv serve' will have no page (install nodejs and npm, and build again)")
endif()
