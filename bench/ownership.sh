#!/usr/bin/env bash
# ./dev bench ownership [seconds a case]: the merge engine beside the Go engine, in nanoseconds an operation.
#
# The objects are those of the Go engine's own benchmark, in PEER_DATA (default: ../shared/peer-data). Where go is
# installed, PEER (default: ../shared/tools/peer/peer) runs that benchmark in the same run and the ratio is printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:-0.3}
data=${PEER_DATA:-../shared/peer-data}/merge
peer=${PEER:-../shared/tools/peer/peer}
[ -d "$data" ] || { echo "bench: no folder $data: set PEER_DATA" >&2; exit 1; }
cmake --build build/release --target ownership_bench -- --quiet

ours=$(mktemp) theirs=$(mktemp)
trap 'rm -f "$ours" "$theirs"' EXIT
build/release/src/ownership/ownership_bench "$data" "$seconds" >"$ours"
if command -v go >/dev/null && [ -x "$peer" ]; then
  "$peer" engine-bench -bench 'BenchmarkOperations/(Pod|Node|Endpoints|PrometheusCRD|apiresourceimport)$/(Create|Apply|ApplyTwice|Update|UpdateVersion)$' \
    -benchtime "${seconds}s" | sed -n 's|^BenchmarkOperations/\([^ ]*\)-[0-9]*[[:space:]]*[0-9]*[[:space:]]*\([0-9.]*\) ns/op.*|\1 \2|p' >"$theirs"
else
  echo "bench: go or $peer is missing: no comparison with the Go engine" >&2
fi
awk 'NR == FNR { go[$1] = $2; next }
     FNR == 1 { printf "%-34s %12s %12s %8s\n", "operation", "holdfast ns", "go ns", "ratio" }
     { if ($1 in go) printf "%-34s %12d %12d %7.1fx\n", $1, $2, go[$1], go[$1] / $2; else printf "%-34s %12d\n", $1, $2 }' "$theirs" "$ours"
