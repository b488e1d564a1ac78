#!/usr/bin/env bash
# Time and memory of 2,000 CustomResourceDefinitions: ./dev bench crds [COUNT]
# Created one after the other by one client; their memory, and how long a server with them takes to start. Goals: 10 s,
# 100 KB each.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --build build/release --target holdfast -- -j2 >/dev/null
exec python3 bench/crds.py build/release/bin/holdfast "${1:-2000}"
