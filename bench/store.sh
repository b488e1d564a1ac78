#!/usr/bin/env bash
# Throughput and latency of the embedded store on the disk of BENCH_DIR (.cache): ./dev bench store [--million] [OPTIONS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
args=()
for arg in "$@"; do
  case $arg in
    --million) args+=(--objects=1000000) ;;
    *) args+=("$arg") ;;
  esac
done
cmake --build build/release --target store_bench -- --quiet
folder=${BENCH_DIR:-.cache/bench-store}
mkdir -p "$folder"
exec build/release/src/storage/store/store_bench "$folder" "${args[@]}"
