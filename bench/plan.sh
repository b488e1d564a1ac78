#!/usr/bin/env bash
# Instructions of applies and patches with each mechanism of the memory plan: ./dev bench plan [--json]
# Counted by callgrind inside one process, and compared with all mechanisms off; the limit is 1%.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release --target check_driver -- --quiet
exec python3 bench/plan.py build/release/bench/check_driver "$@"
