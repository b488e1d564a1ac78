#!/usr/bin/env bash
# How long event loops are blocked under a mixed load that includes expensive requests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release -- holdfast >&2
exec python3 bench/stalls.py "$PWD/build/release/bin/holdfast" "$@"
