#!/usr/bin/env bash
# ./run on a system that is not Debian: what is missing is one line, by its own name, with the parts to leave out.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "setup: $*" >&2; exit 1; }
cp -r "$source"/{run,tools,cmake,qkv,tests,examples,CMakeLists.txt,CMakePresets.json} "$work"
mkdir "$work/bin"
ln -s /usr/bin/* "$work/bin"
rm -f "$work"/bin/{apt-get,npm,ccache}

# refused TEXT: ./run fails with one line that says the text; what it does and that there will be no page are others.
refused() {
  local code=0
  PATH=$work/bin "$work/run" --version >"$work/out" 2>"$work/err" || code=$?
  [ $code = 1 ] || fail "./run gave $code, not 1: $(cat "$work/err")"
  [ "$(grep -Evc 'npm|building' "$work/err")" = 1 ] && grep -qF -- "$1" "$work/err" || fail "expected '$1', not: $(cat "$work/err")"
}
export PKG_CONFIG=/bin/false
refused "qkv: missing libraries: pkg-config, SentencePiece, Pango, libmicrohttpd; install them"
refused "cmake --preset release -DQKV_SENTENCEPIECE=OFF -DQKV_PICTURES=OFF -DQKV_SERVE=OFF"
rm "$work"/bin/{cmake,c++}
refused "qkv: missing: cmake, a C++20 compiler (g++ 12 or clang 14, or later); install them"
