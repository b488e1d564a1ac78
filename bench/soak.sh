#!/usr/bin/env bash
# Memory, threads and descriptors while everything is made and removed: ./dev bench soak [SECONDS] [SVG]
# Rounds of CRDs with objects, namespaces, webhooks, policies, Services, tokens and watches, for ten minutes by default.
# Goal: all three end where they were. The plot is printed, and written to .cache/soak.svg.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release --target holdfast -- -j2 >/dev/null
mkdir -p .cache
exec python3 bench/soak.py build/release/bin/holdfast "${1:-600}" "${2:-.cache/soak.svg}"
