#!/usr/bin/env bash
# hardening_test.sh PROGRAM KERNEL_OBJECTS: the program is position independent, its relocations are read-only, its stack
# cannot run, buffers and libc calls are checked; and nothing of that is added to the kernels' loops.
set -euo pipefail
program=$1
kernels=$2
fail() { echo "hardening: $*" >&2; exit 1; }
# has TEXT PATTERN WHAT
has() { grep -Eq "$2" <<<"$1" || fail "the program has no $3"; }
headers=$(readelf -W --file-header --program-headers --dynamic "$program")
symbols=$(readelf -W --dyn-syms "$program")
has "$headers" 'Type: +DYN' "position-independent code"
has "$headers" 'FLAGS_1.* PIE' "position-independent code"
has "$headers" GNU_RELRO "read-only relocations (RELRO)"
has "$headers" 'FLAGS_1.* NOW' "immediate binding"
has "$headers" 'GNU_STACK.* RW ' "stack that cannot run"
has "$symbols" __stack_chk_fail "stack protector"
has "$symbols" '__(memcpy|snprintf|vsnprintf|read|printf|fprintf)_chk' "checked libc calls (_FORTIFY_SOURCE)"
objects=$(find "$kernels" -name '*.o')
[ -n "$objects" ] || fail "no objects in $kernels"
added=$(nm -A $objects | grep -E ' U __(stack_chk_fail|[a-z]+_chk)$' || true)
[ -z "$added" ] || fail "the kernels pay for it: $added"
