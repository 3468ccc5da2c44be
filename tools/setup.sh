# Sourced by ./run and ./test: installs what is missing, configures and builds.

qkv_say() { printf 'qkv: %s\n' "$*" >&2; }

# Packages of Debian 12 behind the program, and behind its tests.
QKV_BUILD_PACKAGES="cmake ninja-build g++ pkg-config ccache libhwy-dev nlohmann-json3-dev libcli11-dev
  libpango1.0-dev libmicrohttpd-dev libsentencepiece-dev zlib1g-dev fonts-dejavu-core"
QKV_TEST_PACKAGES="libgtest-dev libbenchmark-dev clang-format python3"
QKV_PAGE_TEST_PACKAGES="chromium"
QKV_SANITIZE_PACKAGES="clang libclang-rt-14-dev llvm"

# need_packages NAME...: installs those that are missing, or says in one line which they are.
need_packages() {
  command -v dpkg-query >/dev/null || return 0 # not Debian: CMake names what it cannot find
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
  if ! { $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y -qq --no-install-recommends $missing; } >build/setup.log 2>&1; then
    qkv_say "could not install:$missing; see build/setup.log"
    return 1
  fi
}

# The page is bundled by npm. A machine may have it from elsewhere than Debian; without it the program still builds.
need_npm() {
  command -v npm >/dev/null && command -v node >/dev/null && return 0
  need_packages nodejs npm || qkv_say "going on without npm: 'qkv serve' will have no page"
}

# build PRESET TARGET...: configures when needed and builds; the log is shown when it fails.
build() {
  local preset=$1
  shift
  mkdir -p build
  local launcher=""
  # Paths below this folder are cached relative to it, so that another clone finds what this one compiled.
  command -v ccache >/dev/null && launcher="-DCMAKE_CXX_COMPILER_LAUNCHER=ccache" && export CCACHE_BASEDIR=$PWD
  if ! cmake --preset "$preset" $launcher >"build/configure-$preset.log" 2>&1; then
    tail -n 20 "build/configure-$preset.log" >&2
    qkv_say "could not configure; see build/configure-$preset.log"
    return 1
  fi
  if [ -t 2 ]; then
    cmake --build --preset "$preset" --target "$@" >&2
  elif ! cmake --build --preset "$preset" --target "$@" >"build/build-$preset.log" 2>&1; then
    grep -E -A5 'error|FAILED' "build/build-$preset.log" | head -n 40 >&2
    qkv_say "could not build; see build/build-$preset.log"
    return 1
  fi
}
