#!/usr/bin/env bash
# Memory and time to ready of a watch cache with 100,000 pods: ./dev bench memory [PODS]
# On the embedded store, for 200 apps of one exemplar (bench/data/pod.json) and 2,000 mixed apps, with each mechanism
# disabled in turn, and after churn.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pods=${1:-100000}
pod=bench/data/pod.json
cmake --build build/release --target memory_bench -- --quiet
bench=build/release/bench/memory_bench
dir=${BENCH_DIR:-.cache/bench-memory}
rm -rf "$dir"; mkdir -p "$dir"
trap 'rm -rf "$dir"' EXIT

run() { printf '%-44s' "$1"; shift; "$bench" run "$@" --no-header; }
header() { printf '%-44s%8s %8s %8s %8s | %8s %8s %8s %8s %8s %8s | %9s %9s\n' "$1" "ready s" "CPU s" "RSS then" "RSS MB" bodies plain entries index events owners "raw body" FieldsV1; }

for kind in "" --mixed; do
  "$bench" fill "$dir/${kind:-same}" "$pod" $kind --pods="$pods"
  header "${kind:-200 apps} (goals: 2 s, 300 MB, owners 15 MB)"
  run "all on" "$dir/${kind:-same}"
  run "bodies plain" "$dir/${kind:-same}" --plain-bodies
  run "ManagedFieldsPool off" "$dir/${kind:-same}" --feature-gates=ManagedFieldsPool=false
  run "CompressManagedFieldsInCache off" "$dir/${kind:-same}" --feature-gates=CompressManagedFieldsInCache=false
  run "both off" "$dir/${kind:-same}" --feature-gates=ManagedFieldsPool=false,CompressManagedFieldsInCache=false
  run "low churn: 1,000 updates" "$dir/${kind:-same}" --churn=1000
  run "high churn: 30,000 updates" "$dir/${kind:-same}" --churn=30000
  rm -rf "$dir/${kind:-same}"
done
"$bench" fill "$dir/kubernetes" "$pod" --kubernetes --pods="$pods"
header "as kube-apiserver stores them (FieldsV1, no mark)"
run "all on" "$dir/kubernetes"
