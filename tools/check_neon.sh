#!/usr/bin/env bash
# check_neon.sh: builds the library for 64-bit Arm and runs the kernels' tests under qemu, on NEON.
# Needs g++-aarch64-linux-gnu and qemu-user-static. The Arm packages of Highway, GoogleTest and JSON are unpacked into
# the build folder: nothing of another processor is installed on this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$PWD/build/arm64
root=$build/root
mkdir -p "$build"

# arm_apt ARGUMENT...: apt-get for arm64 with lists and cache of its own.
arm_apt() {
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Sandbox::User=root \
    -o Dir::State="$build/apt" -o Dir::State::status=/dev/null -o Dir::Cache="$build/apt/cache" "$@"
}
if [ ! -e "$root/unpacked" ]; then
  rm -rf "$root"
  mkdir -p "$root" "$build/apt/lists/partial" "$build/apt/cache/archives/partial"
  (
    cd "$build/apt/cache" && arm_apt update && arm_apt download libhwy-dev libgtest-dev nlohmann-json3-dev &&
      arm_apt download $(dpkg-deb -f libhwy-dev_*.deb Depends | grep -o 'libhwy[0-9][0-9a-z]*') # named after its version
  ) >"$build/apt.log" 2>&1 ||
    { tail -n 5 "$build/apt.log" >&2; echo "check_neon: could not get the arm64 packages; see $build/apt.log" >&2; exit 1; }
  for package in "$build"/apt/cache/*.deb; do dpkg-deb -x "$package" "$root"; done
  touch "$root/unpacked"
fi

export CCACHE_BASEDIR=$PWD
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_FIND_ROOT_PATH="$root" -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$PWD/tools/compile.sh" -DCMAKE_CXX_FLAGS=-Wno-psabi \
  -DQKV_PROGRAM=OFF -DQKV_RUNS=OFF -DQKV_EXAMPLES=OFF -DQKV_TESTS=ON >"$build/configure.log" 2>&1 ||
  { tail -n 20 "$build/configure.log" >&2; exit 1; }
cmake --build "$build" --target test_kernels >"$build/build.log" 2>&1 ||
  { grep -E -A5 'error|FAILED' "$build/build.log" | head -n 40 >&2; exit 1; }
. tools/setup.sh
no_warnings "$build"
qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$root/usr/lib/aarch64-linux-gnu" \
  "$build/tests/test_kernels" --gtest_brief=1
