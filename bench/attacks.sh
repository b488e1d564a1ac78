#!/usr/bin/env bash
# CPU seconds and memory of deliberately expensive requests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release -- holdfast >&2
exec python3 bench/attacks.py "$PWD/build/release/bin/holdfast" "$@"
