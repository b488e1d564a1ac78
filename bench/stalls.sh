#!/usr/bin/env bash
# How long event loops keep their connections waiting under a mixed load with expensive requests in it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release -- holdfast >&2
exec python3 bench/stalls.py "$PWD/build/release/bin/holdfast" "$@"
