# Sourced by ./run and ./test: installs what is missing, configures and builds.

qkv_say() { printf 'qkv: %s\n' "$*" >&2; }

# Packages of Debian 12 and 13 that the program needs, and those its tests need. SentencePiece's pkg-config file asks for
# protobuf's in Debian 13, its headers for Abseil's in the next Debian; no package brings them along.
QKV_BUILD_PACKAGES="cmake ninja-build g++ pkg-config ccache libhwy-dev nlohmann-json3-dev libcli11-dev
  libpango1.0-dev libmicrohttpd-dev libsentencepiece-dev libprotobuf-dev libabsl-dev zlib1g-dev fonts-dejavu-core"
QKV_TEST_PACKAGES="libgtest-dev clang-format python3"
QKV_PYTHON_PACKAGES="pybind11-dev python3-dev python3-numpy libdlpack-dev"
QKV_MPI_PACKAGES="libopenmpi-dev openmpi-bin"
QKV_MPI_TEST_PACKAGES="iproute2 util-linux"
QKV_SITE_PACKAGES="emscripten node-acorn"
QKV_PIP_PACKAGES="python3-pip python3-venv python3-setuptools python3-wheel"
QKV_TORCH_PACKAGES="python3-torch"
QKV_TYPES_PACKAGES="mypy"
QKV_PAGE_TEST_PACKAGES="chromium"
QKV_SANITIZE_PACKAGES="clang libclang-rt-dev llvm"
QKV_LINT_PACKAGES="clang-tidy doxygen"
QKV_ROOT_PACKAGES="debootstrap dpkg-dev"
QKV_NEON_PACKAGES="g++-aarch64-linux-gnu qemu-user-static"

# Systems whose packages have other names: says in one line which tools are missing; CMake does so for the libraries.
need_tools() {
  local missing=""
  command -v cmake >/dev/null || missing="$missing, cmake"
  command -v ninja >/dev/null || missing="$missing, ninja"
  command -v c++ >/dev/null || missing="$missing, a C++20 compiler (g++ 12 or clang 14, or later)"
  [ -z "$missing" ] && return 0
  qkv_say "missing: ${missing#, }; install them (README.md has the line for some systems)"
  return 1
}

# need_packages NAME...: installs those that are missing, or says in one line which they are.
need_packages() {
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || { need_tools; return; }
  local missing="" name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing="$missing $name"
  done
  [ -z "$missing" ] && return 0
  local as_root=""
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null; then
      as_root=sudo
    else
      qkv_say "missing packages:$missing; install them as root with: apt-get install$missing"
      return 1
    fi
  fi
  qkv_say "installing$missing"
  mkdir -p build
  # The lists may be absent or old on a fresh machine: refresh them first, and install without extras.
  # Another installation, say the system's own update, is waited for.
  if ! { $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $missing; } >build/setup.log 2>&1; then
    qkv_say "could not install:$missing; see build/setup.log"
    return 1
  fi
}

# The page is bundled by npm. A machine may have it from elsewhere than Debian; without it the program still builds.
need_npm() {
  command -v npm >/dev/null && command -v node >/dev/null && return 0
  need_packages nodejs npm && command -v npm >/dev/null && return 0
  qkv_say "continuing without npm: 'qkv serve' will have no page (it needs Node.js 18 or later with npm)"
}

# A build folder that was moved or copied here together with its checkout: CMake would refuse it, so it configures again;
# what it had compiled comes from ccache.
forget_moved() {
  local cache home
  for cache in build/*/CMakeCache.txt; do
    [ -e "$cache" ] || continue
    home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$cache")
    [ "$home" -ef . ] || rm -f "$cache"
  done
}

# Reads what ninja says and prints a line per tenth of a build that takes some time.
progress() {
  local line done all tenth=0
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
    if [ "$all" -ge 20 ] && [ $((10 * done / all)) -gt "$tenth" ]; then
      tenth=$((10 * done / all))
      qkv_say "built ${tenth}0 % ($done of $all steps)"
    fi
  done
}

# build PRESET TARGET...: configures when needed and builds; the log is shown when it fails.
build() {
  local preset=$1
  shift
  mkdir -p build
  forget_moved
  # Paths below this folder are cached relative to it, so that another clone finds what this one compiled.
  export CCACHE_BASEDIR=$PWD
  if ! cmake --preset "$preset" -DCMAKE_CXX_COMPILER_LAUNCHER="$PWD/tools/compile.sh" \
    >"build/configure-$preset.log" 2>&1; then
    grep '^qkv: ' "build/configure-$preset.log" >&2 && return 1
    tail -n 20 "build/configure-$preset.log" >&2
    qkv_say "could not configure; see build/configure-$preset.log"
    return 1
  fi
  if [ -t 2 ]; then
    cmake --build --preset "$preset" --target "$@" >&2
  elif ! cmake --build --preset "$preset" --target "$@" 2>&1 | tee "build/build-$preset.log" | progress; then
    grep -E -A5 'error|FAILED' "build/build-$preset.log" | head -n 40 >&2
    qkv_say "could not build; see build/build-$preset.log"
    return 1
  fi
}

# no_warnings FOLDER: shows the compiler's warnings of everything built in that folder, and fails if there are any.
no_warnings() {
  local file found=0
  while IFS= read -r file; do
    [ -e "${file%.warnings}" ] || continue # its source is gone
    cat "$file" >&2
    found=1
  done < <(find "$1" -name '*.o.warnings')
  [ $found -eq 0 ] || { qkv_say "the compiler warns"; return 1; }
}
