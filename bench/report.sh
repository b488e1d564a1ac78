#!/usr/bin/env bash
# Measures everything in docs/benchmarks.md again, compared with kube-apiserver: ./dev bench report [--quick] [OPTIONS]
# Writes docs/benchmarks.md, its plots and the raw figures (docs/benchmarks/report.json). Needs an idle machine. If go
# is installed, kube-apiserver and etcd are built from their Go modules (a few minutes, once); without it only Holdfast is
# measured, and compared with the last recorded figures.
#
#   ./dev bench report                     everything, at most 90 minutes
#   ./dev bench report --quick             fewer objects and requests, ten minutes
#   ./dev bench report --minutes 35        as large as fits into that time
#   ./dev bench report --only lists,watch  some sections; the others keep their figures
#   ./dev bench report --without-peer      only Holdfast
#   ./dev bench report --render            only the page and its plots, from the recorded figures
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. bench/peer/peer.sh
./dev install python3-matplotlib
case " $* " in *" --render "* | *" --help "*) exec python3 bench/report.py "$@" ;; esac
cmake --build build/release --target holdfast load_bench memory_bench cel_bench -- --quiet
peer=()
case " $* " in
  *" --without-peer "*) ;;
  *) ! peer_available "kube-apiserver; its figures are the last recorded ones" || peer=(--peer "$(peer_kubernetes)") ;;
esac
exec python3 bench/report.py "${peer[@]}" "$@"
