#!/usr/bin/env bash
# What requests cost, beside the real kube-apiserver under the same load on the same machine: CPU by verb and format, watch
# deliveries, LISTs of many pods, start and memory, with ratios. Needs go and the comparison tools (tools/sidebyside of the
# folder `shared` beside the checkout; SIDEBYSIDE=.../run.py says where else).
#
#   ./dev bench cost --skip-pods          small objects only (a few minutes)
#   ./dev bench cost --pods 20000         LISTs of fewer than 100,000 pods
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tool=${SIDEBYSIDE:-}
for above in .. ../.. ../../..; do
  [ -n "$tool" ] || [ ! -f "$above/shared/tools/sidebyside/run.py" ] || tool=$above/shared/tools/sidebyside/run.py
done
[ -f "$tool" ] || { echo "cost: the comparison tool was not found; SIDEBYSIDE=.../run.py says where it is" >&2; exit 1; }
command -v go >/dev/null || { echo "cost: needs go, to build kube-apiserver" >&2; exit 1; }
cmake --build build/release --target holdfast >/dev/null
exec python3 "$tool" --bin build/release/bin/holdfast "$@"
