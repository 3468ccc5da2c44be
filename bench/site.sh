#!/usr/bin/env bash
# bench/site.sh [ROUNDS]: what WebAssembly costs, beside SSE4 on one thread, and how long the reversal model takes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/setup.sh
need_packages $QKV_SITE_PACKAGES
export NODE_PATH=/usr/share/nodejs # where Debian's emscripten looks for acorn
build wasm-test qkv_site bench_site
build test bench_site
node bench/site.mjs build/wasm/bench_site.js build/release/bench/bench_site "${1:-5}"
node tests/wasm/train.mjs build/wasm/qkv.js
