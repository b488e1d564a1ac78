#!/usr/bin/env bash
# Memory, threads and descriptors while objects of all kinds are created and deleted: ./dev bench soak [SECONDS] [SVG] [CLIENTS]
# Rounds of CRDs with objects, namespaces, webhooks, policies, Services, tokens and watches, for ten minutes and by four
# clients by default.
# Goal: all three return to their initial values. The plot is printed, and written to .cache/soak.svg.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release --target holdfast -- -j2 >/dev/null
mkdir -p .cache
exec python3 bench/soak.py build/release/bin/holdfast "${1:-600}" "${2:-.cache/soak.svg}" "${3:-4}"
