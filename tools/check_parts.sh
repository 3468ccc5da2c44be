#!/bin/bash
# Builds the program with every part left out, checks that nothing of what they need is found, included or linked, and
# runs it: the commands work, and what lacks its part says so in one line.
set -eo pipefail
cd "$(dirname "$0")/.."
build=build/parts
mkdir -p build
export CCACHE_BASEDIR=$PWD
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DQKV_PICTURES=OFF -DQKV_SERVE=OFF \
  -DQKV_SENTENCEPIECE=OFF -DQKV_GZIP=OFF -DCMAKE_CXX_COMPILER_LAUNCHER="$PWD/tools/compile.sh" >"$build.log" ||
  { cat "$build.log"; exit 1; }
cmake --build "$build" --target qkv_program >>"$build.log" || { tail -40 "$build.log"; exit 1; }
. tools/setup.sh
no_warnings "$build"

needs='pango|cairo|glib-2|zlib|sentencepiece|microhttpd'
fail() { echo "parts: $1" >&2; exit 1; }
# found PATTERN: whether a line of standard input has it; all of it is read, so that no writer ends by a broken pipe.
found() { grep -Ei "$1" >/dev/null; }
grep -v ^QKV_ "$build/CMakeCache.txt" | found "^[A-Z_]*($needs)" && fail "CMake looked for a package of a part that is off"
ninja -C "$build" -t deps | found "/usr/.*($needs)" && fail "a source includes a header of a part that is off"
ldd "$build/qkv" | found "$needs|libz\\." && fail "the program links a library of a part that is off"

qkv=$PWD/$build/qkv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
works() { "$qkv" "$@" >out 2>err || fail "'qkv $*' failed: $(cat err)"; }
# refuses TEXT arguments…: exit code 1 and one line that says so.
refuses() {
  local text=$1 code=0
  shift
  "$qkv" "$@" >out 2>err || code=$?
  [ "$code" = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -Fq "$text" err || fail "'qkv $*' gave $code and: $(cat err)"
}
small="--train-size 256 --validation-size 32 --hidden 8 --max-length 4 --epochs 1"
works train reverse $small --out run
works compare reverse --attention none,dot $small --out both
works eval run
works predict run abc
works map run --input abc
works map run --input abc --out map.html
works lab copy --out lab.html
works train translate --generated-size 200 --hidden 8 --embedding 8 --epochs 1 --out words
works train images --data shapes --train-size 100 --layers 1 --width 8 --epochs 1 --out shapes
refuses QKV_PICTURES=OFF map run --input abc --out map.png
refuses QKV_PICTURES=OFF lab copy --out lab.svg
refuses QKV_SERVE=OFF serve
refuses QKV_SENTENCEPIECE=OFF train translate --tokenizer unigram --generated-size 200 --out pieces
echo abc | gzip >strings.gz
refuses QKV_GZIP=OFF eval run --data strings.gz
python3 - <<'END'
import struct, zlib
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
head = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0))
open("a.png", "wb").write(b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(17 * 16))) + chunk(b"IEND", b""))
END
refuses QKV_GZIP=OFF predict shapes a.png
echo "parts: the program without any of them builds, runs and says what it lacks"
