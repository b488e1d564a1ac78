#!/usr/bin/env bash
# Time from exec to ready on an empty data directory, and idle memory: ./dev bench start [COUNT]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release --target holdfast >/dev/null
exec python3 bench/start.py build/release/bin/holdfast "${1:-20}"
