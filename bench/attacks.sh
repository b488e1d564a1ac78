#!/usr/bin/env bash
# What requests that are made to be expensive cost, in CPU seconds and in memory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release -- holdfast >&2
exec python3 bench/attacks.py "$PWD/build/release/bin/holdfast" "$@"
