#!/usr/bin/env bash
# MB/s of each codec and transcoder on one hot pod and over 20,000 distinct ones: ./dev bench codec [POD]
# POD is a pod as YAML or JSON; by default the one in bench/data.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release --target codec_bench -- --quiet
exec build/release/src/core/codec/codec_bench "${1:-bench/data/pod.json}"
