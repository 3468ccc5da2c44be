#!/usr/bin/env bash
# check_pip.sh: installs ./python with pip into a virtual environment that sees Debian's packages, without a network, and
# uses it as a stranger would.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work" "$here/python/build" "$here/python/qkv.egg-info"' EXIT
/usr/bin/python3 -m venv --system-site-packages "$work/venv"
QKV_PAGE=0 "$work/venv/bin/pip" install --quiet --no-build-isolation --no-index "$here/python" >"$work/log" 2>&1 ||
  { tail -n 30 "$work/log" >&2; exit 1; }
cd "$work"
venv/bin/python - <<'END'
import numpy as np
import qkv
x = np.eye(3, dtype="f4")
assert qkv.attention(x, x, x).shape == (3, 3)
run = qkv.train("reverse", epochs=1, train_size=64, validation_size=8, out="run", progress=False)
assert "<svg" in run.trace("abcd").view().html()  # pictures, without the page's script
END
venv/bin/qkv predict run abcd >/dev/null
venv/bin/python -m qkv --version
