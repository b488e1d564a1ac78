#!/usr/bin/env bash
# Nanoseconds per operation of the merge engine, beside the Go engine: ./dev bench ownership [SECONDS PER CASE]
# The objects are made by bench/merge_inputs.py. Where go is installed, the Go engine (structured-merge-diff) is built from
# its module and does the same operations on the same objects, and the ratio is printed. ApplyAgainUnset is ApplyAgain with
# an unset marker in place of every twentieth scalar, ApplyAgainUnsetMany of every fourth.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. bench/peer/peer.sh
seconds=${1:-0.3}
cmake --build build/release --target ownership_bench -- --quiet
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 bench/merge_inputs.py "$work/inputs"

build/release/src/ownership/ownership_bench "$work/inputs" "$seconds" >"$work/ours"
touch "$work/theirs"
if peer_available "the comparison with the Go engine"; then
  engine=$(peer_program engine)
  "$engine" "$work/inputs" "$seconds" >"$work/theirs"
fi
awk 'NR == FNR && FILENAME != ARGV[2] { go[$1] = $2; next }
     FNR == 1 { printf "%-34s %12s %12s %8s\n", "operation", "holdfast ns", "go ns", "ratio" }
     { if ($1 in go) printf "%-34s %12d %12d %7.1fx\n", $1, $2, go[$1], go[$1] / $2; else printf "%-34s %12d\n", $1, $2 }' "$work/theirs" "$work/ours"
