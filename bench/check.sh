#!/usr/bin/env bash
# Instructions of engine, codecs, GET, LIST, apply and watch, compared with the recorded counts: ./dev bench check [--record] [CASE...]
# Counted by callgrind inside one process, so the load of the machine does not matter. Fails if a count is more than 5%
# above bench/check.json; --record writes that file. Counts are for the release build with its profile, on x86-64.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release --target check_driver -- --quiet
exec python3 bench/check.py build/release/bench/check_driver "$@"
