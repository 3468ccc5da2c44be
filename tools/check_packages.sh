#!/usr/bin/env bash
# check_packages.sh BUILD_DIR: makes the Debian packages of that build, installs them in a Debian 12 that has nothing, and
# uses them there: the program without a compiler, then the library with one. Needs root and debootstrap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$(cd "$1" && pwd)
. tools/debian_root.sh
work=$build/packages-check
rm -rf "$work" "$build/packages"
mkdir -p "$work"
fail() {
  echo "check_packages: $*" >&2
  exit 1
}
# quietly LOG COMMAND...: the log is shown when the command fails.
quietly() {
  local log=$work/$1.log
  shift
  "$@" >"$log" 2>&1 || { tail -n 40 "$log" >&2; fail "failed: $*"; }
}
quietly cpack cpack --config "$build/CPackConfig.cmake"
clean=$(debian_root bookworm)
root=$work/root
cp -a "$clean" "$root"
cp "$build"/packages/*.deb "$root/root"
quietly update in_root "$root" apt-get update
# there NAME SCRIPT: bash with that script in the root, in /root.
there() { quietly "$1" in_root "$root" bash -euo pipefail -c "cd /root; $2"; }

there program 'apt-get install -y --no-install-recommends ./qkv_*.deb; ! command -v c++'
there train 'qkv train reverse --epochs 1 --train-size 256 --out runs/tiny; qkv predict runs/tiny abcd'
there map 'qkv map runs/tiny --input abcd --out map.png; head -c 8 map.png | grep -q PNG'
there serve 'qkv serve --port 8419 >serve.log & server=$!
  trap "kill $server" EXIT
  ask() { exec 3<>/dev/tcp/127.0.0.1/8419; printf "GET $1 HTTP/1.0\r\nHost: 127.0.0.1:8419\r\n\r\n" >&3; cat <&3; }
  for try in {1..50}; do ask / >page 2>/dev/null && break; sleep 0.2; done
  grep -q "<html" page; grep -q "app\.js" page
  ask /api/runs >runs.json; grep -q tiny runs.json'
echo "the program: ok"

there manual 'apt-get install -y --no-install-recommends man-db
  man --warnings qkv 2>warnings | grep -q "qkv train translate"; ! grep . warnings'
there completion 'apt-get install -y --no-install-recommends bash-completion
  . /usr/share/bash-completion/bash_completion; _completion_loader qkv || [ $? = 124 ]
  COMP_WORDS=(qkv map "") COMP_CWORD=2; _qkv; [ "${COMPREPLY[*]}" = runs/tiny ]'
echo "manual and completion: ok"

there library 'apt-get install -y --no-install-recommends ./libqkv-dev_*.deb g++ cmake make; mkdir app runs_app'
awk '$0 == "```cpp" {inside = 1; next} inside && /^```/ {exit} inside' README.md >"$root/root/app/main.cc"
awk '$0 == "```cmake" {inside = 1; next} inside && /^```/ {exit} inside' README.md >"$root/root/app/CMakeLists.txt"
cp examples/from_run/main.cc "$root/root/runs_app"
sed 's/find_package(qkv.*/find_package(qkv REQUIRED COMPONENTS runs)/; s/qkv::qkv/qkv::runs/' \
  "$root/root/app/CMakeLists.txt" >"$root/root/runs_app/CMakeLists.txt"
there find_package 'cmake -S app -B app/build; cmake --build app/build; app/build/app'
there pkg_config 'c++ -std=c++20 app/main.cc $(pkg-config --cflags --libs qkv) -o app/alone; app/alone'
there runs 'cmake -S runs_app -B runs_app/build; cmake --build runs_app/build; runs_app/build/app runs/tiny abcd'
there remove 'apt-get remove -y qkv libqkv-dev; ! ls /usr/bin/qkv /usr/lib/libqkv.a'
echo "the library: ok"
rm -rf "$work"
