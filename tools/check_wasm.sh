#!/usr/bin/env bash
# check_wasm.sh: builds the WebAssembly build's tests and runs them under Node.js: kernels (attention's case table among
# them), tensors, ops and files; the fuzzers' seeds, cut short and changed; then the lab against the program's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/setup.sh
export NODE_PATH=/usr/share/nodejs # where Debian's emscripten looks for acorn
build wasm-test qkv_site test_base test_core test_kernels test_ops test_io test_fuzz_seeds
no_warnings build/wasm
# Left out: what needs threads, other processes, or a second instruction set.
# Older emscripten would load the program by fetch(), which takes no path under Node.js.
run() { echo "$1"; node --no-experimental-fetch "build/wasm/tests/test_$1.js" --gtest_brief=1 --gtest_filter="-$2"; }
run base "Parallel*:*Thread*:Budget*"
run core "*Thread*"
run kernels "*Thread*:*NeedLittleMemory:SimdTarget.PortableFallbackIsListed"
run ops "*Thread*"
# The tab's file system is memory: no limits on files, no other processes, no links.
run io "*Pipe*:*Lock*:File.WriteErrors*:File.WhatIsThereStays:File.WhatAKilled*:Folder.FailureKeeps*:Folder.Leftovers*:AppendFile.Continues*"
node --no-experimental-fetch build/wasm/tests/test_fuzz_seeds.js
node tests/wasm/lab_test.mjs build/wasm/qkv.js build/release/qkv
