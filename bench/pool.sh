#!/usr/bin/env bash
# ./dev bench pool [POD [pods]]: bytes of ownership of 100,000 pods by the form in which it is kept, for 200 apps of one
# exemplar and for 2,000 mixed apps. POD is a pod as YAML or JSON; otherwise exemplar_pod.yaml of HOLDFAST_PEER_DATA or of
# ../shared/peer-data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pod=${1:-}
for folder in "${HOLDFAST_PEER_DATA:-}" ../shared/peer-data; do
  if [ -z "$pod" ] && [ -n "$folder" ] && [ -f "$folder/exemplar_pod.yaml" ]; then pod=$folder/exemplar_pod.yaml; fi
done
[ -n "$pod" ] || { echo "bench: no exemplar: give a pod, or set HOLDFAST_PEER_DATA" >&2; exit 1; }
cmake --build build/release --target pool_bench -- --quiet
exec build/release/bench/pool_bench "$pod" "${@:2}"
