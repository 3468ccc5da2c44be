#!/bin/sh
# compile.sh COMPILER ARGUMENT...: compiles, through ccache where there is one, and keeps the warnings beside the
# object, so that ./test also finds those of files that ./run compiled.
object=unnamed
previous=""
for word in "$@"; do
  [ "$previous" = -o ] && object=$word
  previous=$word
done
$(command -v ccache) "$@" 2>"$object.warnings"
status=$?
cat "$object.warnings" >&2
{ [ $status -eq 0 ] && [ -s "$object.warnings" ]; } || rm -f "$object.warnings"
exit $status
