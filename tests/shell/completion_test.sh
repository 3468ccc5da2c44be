#!/usr/bin/env bash
# completion_test.sh PROGRAM: bash completes commands, options, lists and runs; a run's name is never carried out.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
program=$1
. "$source/cmake/qkv-completion.bash"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# expect WORDS... gives REPLY: what the last of the words is completed to.
expect() {
  local COMP_WORDS=("$program") COMP_CWORD reply
  while [ "$1" != gives ]; do COMP_WORDS+=("$1"); shift; done
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) reply=$2
  _qkv
  [ "${COMPREPLY[*]-}" = "$reply" ] || { echo "${COMP_WORDS[*]}: '${COMPREPLY[*]-}', not '$reply'" >&2; exit 1; }
}
expect tra gives train
expect help exp gives explain
expect train rev gives reverse
expect train reverse --atte gives --attention
expect train reverse --attention add gives additive
expect train reverse --attention = add gives additive
expect train reverse --attention = gives "none mean dot scaled-dot general additive multi-head"
expect compare reverse --attention none,add gives none,additive
expect map abc gives ""
"$program" train reverse --epochs 1 --train-size 32 --validation-size 4 --hidden 4 --out runs/first >/dev/null
mkdir runs/group
mv runs/first 'runs/group/$(touch harm)'
expect map "" gives 'runs/group/\$\(touch\ harm\)'
expect map runs/x "" gives ""
[ ! -e harm ] || { echo "a run's name was carried out" >&2; exit 1; }
