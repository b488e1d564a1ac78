#!/usr/bin/env bash
# Instructions of engine, codecs, GET, LIST, apply and watch against those recorded: ./dev bench check [--record] [CASE...]
# Counted by callgrind inside one process, so the load of the machine does not matter. Fails when one is more than 5% above
# bench/check.json; --record writes that file. Counts are of the release build with its profile, for x86-64.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --build build/release --target check_driver -- --quiet
exec python3 bench/check.py build/release/bench/check_driver "$@"
