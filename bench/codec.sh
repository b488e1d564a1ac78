#!/usr/bin/env bash
# ./dev bench codec [POD]: MB/s of each codec and transcoder on one hot pod and over 20,000 distinct ones.
# POD is a pod as YAML or JSON; otherwise exemplar_pod.yaml of HOLDFAST_PEER_DATA or of ../shared/peer-data where it is
# there, otherwise the project's own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pod=${1:-}
for folder in "${HOLDFAST_PEER_DATA:-}" ../shared/peer-data; do
  if [ -z "$pod" ] && [ -n "$folder" ] && [ -f "$folder/exemplar_pod.yaml" ]; then pod=$folder/exemplar_pod.yaml; fi
done
cmake --build build/release --target codec_bench -- --quiet
exec build/release/src/codec/codec_bench "${pod:-tests/data/pod.json}"
