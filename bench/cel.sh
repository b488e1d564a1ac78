#!/usr/bin/env bash
# Nanoseconds to compile and evaluate a CEL expression, compared with Kubernetes' Go library: ./dev bench cel [SECONDS PER CASE]
# Evaluation tracks costs on both sides. Without go, only Holdfast's figures are printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. bench/peer/peer.sh
seconds=${1:-1}
cmake --build build/release --target cel_bench -- --quiet
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/deployment.json" <<'JSON'
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
 "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
  "spec": {"containers": [
   {"name": "web", "image": "registry.example.com/web:1", "ports": [{"containerPort": 80}]},
   {"name": "proxy", "image": "registry.example.com/proxy:2", "args": ["--verbose"]},
   {"name": "metrics", "image": "registry.example.com/metrics:3", "resources": {"limits": {"memory": "64Mi"}}}]}}}}
JSON
expression='object.spec.replicas <= 5 && object.spec.template.spec.containers.all(c, c.image.startsWith("registry.example.com/"))'
build/release/src/kube/cel/cel_bench "$work/deployment.json" "$expression" "$seconds" >"$work/ours"
touch "$work/theirs"
if peer_available "the comparison with Kubernetes' CEL"; then
  cel=$(peer_program cel)
  "$cel" "$work/deployment.json" "$expression" "$seconds" >"$work/theirs"
fi
awk 'NR == FNR && FILENAME != ARGV[2] { go[$1] = $2; next }
     FNR == 1 { printf "%-12s %12s %12s %8s\n", "operation", "holdfast ns", "go ns", "ratio" }
     { if ($1 in go) printf "%-12s %12d %12d %7.1fx\n", $1, $2, go[$1], go[$1] / $2; else printf "%-12s %12d\n", $1, $2 }' "$work/theirs" "$work/ours"
