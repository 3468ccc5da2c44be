#!/usr/bin/env bash
# check_install.sh BUILD_DIR: installs that build into a folder of its own, builds examples/ten_lines as a separate
# project that finds it with find_package(qkv), and checks what the little program prints.
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stage=$build/stage
rm -rf "$stage" "$build/consumer"
cmake --install "$build" --prefix "$stage" >/dev/null
cmake -S "$here/examples/ten_lines" -B "$build/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$stage" >/dev/null
cmake --build "$build/consumer" >/dev/null
output=$("$build/consumer/ten_lines")
expected="[2,8,16,64] attended; gradient of q [2,8,16,64]"
if [ "$output" != "$expected" ]; then
  echo "find_package(qkv) consumer printed '$output', expected '$expected'" >&2
  exit 1
fi
"$stage/bin/qkv" --version >/dev/null
echo "find_package(qkv): ok"
