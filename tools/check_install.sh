#!/usr/bin/env bash
# check_install.sh BUILD_DIR: installs that build into a folder of its own and uses it as a stranger would: the README's
# program with the README's CMake lines, static and shared, by pkg-config, as a part of another project, and every
# public header alone.
set -euo pipefail
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$build/install-check
# Beside that build and as deep: paths relative to it are then the same, and ccache has every object of the library.
shared=$build-shared
subdirectory=$build-subdirectory
rm -rf "$work" "$shared" "$subdirectory"
mkdir -p "$work/app"
export CCACHE_BASEDIR=$here
launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=$here/tools/compile.sh
# The same options, for the same reason.
hardening=-DQKV_HARDENING=$(sed -n 's/^QKV_HARDENING:[A-Z]*=//p' "$build/CMakeCache.txt")

fail() {
  echo "check_install: $*" >&2
  exit 1
}
# quietly LOG COMMAND...: the log is shown when the command fails.
quietly() {
  local log=$work/$1.log
  shift
  "$@" >"$log" 2>&1 || { cat "$log" >&2; fail "failed: $*"; }
}
# block LANGUAGE: the README's first block of that language.
block() {
  awk -v fence="\`\`\`$1" '$0 == fence {inside = 1; next} inside && /^```/ {exit} inside' "$here/README.md"
}
block cpp >"$work/app/main.cc"
block cmake >"$work/app/CMakeLists.txt"
[ -s "$work/app/main.cc" ] && [ -s "$work/app/CMakeLists.txt" ] || fail "README.md has no cpp or no cmake block"

# consumer NAME SOURCE FOLDER CMAKE_ARGUMENT...: builds a program called app there and runs it.
consumer() {
  local name=$1 source=$2 folder=$3
  shift 3
  quietly "$name-configure" cmake -S "$source" -B "$folder" -G Ninja "$launcher" "$@"
  quietly "$name-build" cmake --build "$folder"
  quietly "$name-run" "$folder/app"
  echo "$name: ok"
}

quietly install cmake --install "$build" --prefix "$work/static"
"$work/static/bin/qkv" --version >/dev/null || fail "the installed program does not start"
for file in man/man1/qkv.1.gz bash-completion/completions/qkv; do
  [ -s "$work/static/share/$file" ] || fail "share/$file is not installed"
done
consumer find_package "$work/app" "$work/find_package" -DCMAKE_PREFIX_PATH="$work/static"

find "$work/static/include" -name '*.h' | sort >"$work/headers"
for name in base/settings kernels nlohmann hwy/; do
  if grep -q "include/qkv/$name" "$work/headers" || grep -rqE "#include.*$name" "$work/static/include"; then
    fail "$name is not public, but an installed header includes it or is one"
  fi
done
while read -r header; do
  echo "#include <${header#"$work"/static/include/}>" >"$work/header.cc"
  quietly header c++ -std=c++20 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$work/static/include" "$work/header.cc"
done <"$work/headers"
echo "$(wc -l <"$work/headers") headers, each alone: ok"

# A run that the installed program trained, opened by a program of its own that draws nothing and serves nothing.
mkdir -p "$work/runs"
cp "$here/examples/from_run/main.cc" "$work/runs"
sed 's/find_package(qkv.*/find_package(qkv REQUIRED COMPONENTS runs)/; s/qkv::qkv/qkv::runs/' \
  "$work/app/CMakeLists.txt" >"$work/runs/CMakeLists.txt"
quietly runs-configure cmake -S "$work/runs" -B "$work/from_run" -G Ninja "$launcher" \
  -DCMAKE_PREFIX_PATH="$work/static"
quietly runs-build cmake --build "$work/from_run"
quietly runs-train "$work/static/bin/qkv" train reverse --epochs 1 --train-size 256 --out "$work/run"
quietly runs-run "$work/from_run/app" "$work/run" abcd
grep -q 'abcd -> .*' "$work/runs-run.log" || fail "qkv::runs gave no answer"
ldd "$work/from_run/app" | grep -E 'pango|cairo|microhttpd' && fail "qkv::runs links pictures or the server"
echo "runs: ok"

# pkg_config NAME PREFIX: the same program without CMake.
pkg_config() {
  local flags
  flags=$(PKG_CONFIG_PATH=$2/lib/pkgconfig pkg-config --cflags --libs qkv) || fail "pkg-config does not know qkv"
  # shellcheck disable=SC2086
  quietly "$1" c++ -std=c++20 "$work/app/main.cc" $flags -o "$work/$1"
  quietly "$1-run" env LD_LIBRARY_PATH="$2/lib" "$work/$1"
  echo "$1: ok"
}
pkg_config pkg-config "$work/static"

quietly shared-configure cmake -S "$here" -B "$shared" -G Ninja "$launcher" -DBUILD_SHARED_LIBS=ON -DQKV_PROGRAM=OFF
quietly shared-build cmake --build "$shared"
quietly shared-install cmake --install "$shared" --prefix "$work/shared"
consumer find_package-shared "$work/app" "$work/find_package-shared" -DCMAKE_PREFIX_PATH="$work/shared"
ldd "$work/find_package-shared/app" | grep 'libqkv\.so\.[0-9]' >/dev/null || fail "the program uses no shared library"
pkg_config pkg-config-shared "$work/shared"

# As a part of another project: no program, no tests, no -Werror unless asked for.
mkdir -p "$work/parent"
cp "$work/app/main.cc" "$work/parent"
sed "s|^find_package(qkv.*|add_subdirectory($here qkv)|" "$work/app/CMakeLists.txt" >"$work/parent/CMakeLists.txt"
quietly subdirectory-plain cmake -S "$work/parent" -B "$subdirectory" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
if grep -E -- '-Werror|qkv/(app|serve|tasks)/|tests/' "$subdirectory/compile_commands.json" >/dev/null; then
  fail "add_subdirectory(qkv) builds more than the library, or with -Werror"
fi
consumer subdirectory "$work/parent" "$subdirectory" "$hardening"
rm -rf "$shared" "$subdirectory"
