# cmake -DSOURCE=FOLDER -DOUTPUT=commit.h -P commit.cmake: writes which commit is built, when that has changed. In a
# tarball of git archive commit.txt knows it; a plain copy of the sources builds as "unknown".
set(commit "")
find_program(git git)
# Sources that lie in another project's repository have not its commit.
if(git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE} describe --always --dirty=+changes --abbrev=10 --exclude=*
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
else()
  file(READ ${SOURCE}/cmake/commit.txt commit LIMIT 40)
  string(STRIP "${commit}" commit)
endif()
if(NOT commit MATCHES "^[0-9a-f]+(\\+changes)?$")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define QKV_COMMIT \"${commit}\"\n")  # keeps its date when nothing changed
