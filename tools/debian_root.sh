# Sourced by checks that need a machine with nothing installed: roots of Debian releases. Needs root and debootstrap.

# debian_root RELEASE: makes build/roots/RELEASE from the mirror that apt uses here, unless it is there; prints its path.
debian_root() {
  local root=${QKV_ROOTS:-$PWD/build/roots}/$1 mirror
  if [ ! -e "$root.made" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
    rm -rf "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase "$1" "$root" "$mirror" >"$root.log" 2>&1 ||
      { tail -n 5 "$root.log" >&2; echo "could not make a root of $1; see $root.log" >&2; return 1; }
    touch "$root.made"
  fi
  echo "$root"
}

# in_root ROOT COMMAND...: runs it there with nothing of this machine but its devices and network; what is mounted for it
# goes with it.
in_root() {
  local root=$1
  shift
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  unshare --mount -- bash -ec '
    for name in proc sys dev; do mount --rbind "/$name" "$1/$name"; done
    root=$1
    shift
    exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' in_root "$root" "$@"
}
