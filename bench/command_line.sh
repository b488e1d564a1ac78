#!/usr/bin/env bash
# The command line: first line, duration and memory of `get pods -A` of many pods, and startup time of `with`: ./dev bench command_line [PODS]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pods=${1:-100000}
cmake --build build/release --target holdfast memory_bench -- --quiet
dir=${BENCH_DIR:-.cache/bench-command-line}
rm -rf "$dir"; mkdir -p "$dir/data"
server=
trap '[ -z "$server" ] || { kill "$server"; wait "$server" || true; }; rm -rf "$dir"' EXIT
build/release/bench/memory_bench fill "$dir/data/store" bench/data/pod.json --pods="$pods"
build/release/bin/holdfast serve --data-dir "$dir/data" --listen 127.0.0.1:0 --controllers=none >"$dir/log" 2>&1 &
server=$!
until [ -s "$dir/data/kubeconfig" ]; do kill -0 "$server"; sleep 0.1; done
KUBECONFIG=$PWD/$dir/data/kubeconfig KUBECACHEDIR=$PWD/$dir/cache python3 bench/command_line.py build/release/bin/holdfast
