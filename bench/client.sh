#!/usr/bin/env bash
# Gets and applies per second from one process, compared with client-go: ./dev bench client [CALLS] [AT_ONCE]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
calls=${1:-20000} at_once=${2:-32}
cmake --build build/release --target holdfast calls_bench -- --quiet
dir=${BENCH_DIR:-.cache/bench-client}
rm -rf "$dir"; mkdir -p "$dir"
build/release/bin/holdfast serve --data-dir "$dir/data" --listen 127.0.0.1:0 --controllers=none >"$dir/log" 2>&1 &
server=$!
trap 'kill $server; wait $server || true; rm -rf "$dir"' EXIT
until [ -s "$dir/data/kubeconfig" ]; do kill -0 "$server"; sleep 0.1; done
export KUBECONFIG=$PWD/$dir/data/kubeconfig

rows() {
  local name=$1; shift
  "$@" | while read -r verb rate cpu failed; do
    printf '%-12s %-8s %10s/s %10s us CPU of the client per call, %s failed\n' "$name" "$verb" "$rate" "$cpu" "$failed"
  done
}
rows "C++" build/release/bench/calls_bench "$calls" "$at_once"
if command -v go >/dev/null; then
  (cd bench/client/go && go build -o "$OLDPWD/$dir/client-go" .)
  rows client-go "$dir/client-go" calls "$calls" "$at_once"
else
  echo "go is not installed: skipping client-go"
fi
