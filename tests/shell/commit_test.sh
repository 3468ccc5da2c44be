#!/usr/bin/env bash
# The build knows its commit in a clone and in a tarball; a plain copy, or one in another project's repository, has none.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b

# expect FOLDER PATTERN: what a build of that folder says.
expect() {
  local said
  cmake -DSOURCE="$1" -DOUTPUT="$work/commit.h" -P "$source/cmake/commit.cmake"
  said=$(cat "$work/commit.h")
  [[ $said =~ ^'#define QKV_COMMIT "'($2)'"'$ ]] || { echo "$1: $said, expected: $2" >&2; exit 1; }
}
mkdir -p "$work/clone/cmake"
cp "$source/.gitattributes" "$work/clone"
cp "$source/cmake/commit.txt" "$work/clone/cmake"
cd "$work/clone"
git init -q
git add .
git commit -q -m one
commit=$(git rev-parse HEAD)
expect "$work/clone" "${commit:0:10}"
echo >>cmake/commit.txt
expect "$work/clone" "${commit:0:10}\+changes"
mkdir "$work/tarball"
git archive HEAD | tar -x -C "$work/tarball"
expect "$work/tarball" "${commit:0:7}[0-9a-f]*"
git checkout -q .
mkdir "$work/clone/copy"
cp -r cmake copy/cmake
expect "$work/clone/copy" unknown
