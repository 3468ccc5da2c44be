#!/bin/sh
# Compiles the kernels for 64-bit Arm (NEON) without linking: tools/check_neon.sh [SOURCE...]
# Needs g++-aarch64-linux-gnu and libhwy-dev.
set -eu
cd "$(dirname "$0")/.."
compiler=${CXX:-aarch64-linux-gnu-g++}
command -v "$compiler" >/dev/null || { echo "check_neon: $compiler is missing; install g++-aarch64-linux-gnu" >&2; exit 1; }
# Highway's headers alone: the rest of /usr/include belongs to this machine's processor.
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
ln -s "${HWY_INCLUDE:-/usr/include}/hwy" "$headers/hwy"
[ $# -gt 0 ] || set -- $(find qkv/kernels -name '*.cc' | sort)
for source in "$@"; do
  "$compiler" -std=c++20 -O1 -Wall -Wextra -Werror -Wno-psabi -ffp-contract=off -I. -isystem "$headers" \
    "-DHWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)" -c "$source" -o "$headers/object.o"
  echo "$source"
done
