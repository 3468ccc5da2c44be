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
# A machine behind a proxy trusts its certificate too: npm must, there as here.
certificates=${NODE_EXTRA_CA_CERTS:-}
[ -z "$certificates" ] || cp "$certificates" "$root/etc/ssl/extra.pem"
for command in "./run --version" ./run ./test; do
  echo "$1: $command"
  in_root "$root" env CMAKE_BUILD_PARALLEL_LEVEL="$jobs" ${certificates:+NODE_EXTRA_CA_CERTS=/etc/ssl/extra.pem} bash -c "cd /root/qkv && $command"
done
