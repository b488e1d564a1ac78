#!/usr/bin/env bash
# Bytes of ownership of 100,000 pods, by representation: ./dev bench pool [PODS [POD]]
# For 200 apps of one exemplar and for 2,000 mixed apps. POD is a pod as YAML or JSON; by default the one in bench/data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release --target pool_bench -- --quiet
exec build/release/bench/pool_bench "${2:-bench/data/pod.json}" "${1:-100000}"
