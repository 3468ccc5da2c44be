#!/usr/bin/env bash
# check_debian.sh RELEASE: a clone of what is committed here, in a Debian of that release with nothing installed but git:
# ./run and ./test, as README.md says. Needs root and debootstrap; its compiler cache stays with the root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/debian_root.sh
root=$(debian_root "$1")
rm -rf "$root/root/qkv"
git clone -q . "$root/root/qkv"
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
for command in "apt-get update -qq" "apt-get install -y -qq --no-install-recommends git ca-certificates"; do
  in_root "$root" $command >"$root.log" 2>&1 || { tail -n 5 "$root.log" >&2; exit 1; }
done
# What a machine needs to reach npm's registry, where it needs anything.
[ ! -e ~/.npmrc ] || cp ~/.npmrc "$root/root/.npmrc"
for command in "./run --version" ./run ./test; do
  echo "$1: $command"
  in_root "$root" env CMAKE_BUILD_PARALLEL_LEVEL="$jobs" bash -c "cd /root/qkv && $command"
done
