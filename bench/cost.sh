#!/usr/bin/env bash
# CPU, memory and start of the server beside the real kube-apiserver under the same load: ./dev bench cost [OPTIONS]
# By verb and format, for watch deliveries, and for LISTs of many pods, with ratios. Needs go: the load generator and
# kube-apiserver with its etcd are built from Go modules (some minutes, once).
#
#   ./dev bench cost --skip-pods          small objects only (a few minutes)
#   ./dev bench cost --pods 20000         LISTs of fewer than 100,000 pods
#   ./dev bench cost --only holdfast      without kube-apiserver
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. bench/peer/peer.sh
peer_available "the load generator there is nothing to measure" || exit 1
cmake --build build/release --target holdfast memory_bench -- --quiet
load=$(peer_program load)
peer=
case " $* " in *" --only holdfast "*) ;; *) peer=$(peer_kubernetes) ;; esac
exec python3 bench/cost.py --load "$load" ${peer:+--peer "$peer"} "$@"
