#!/usr/bin/env bash
# ./dev bench suite [count] [at once]: a server for each of 50 tests, as test suites start them, each in a data folder of
# its own on a port of its own: the time until it says that it is ready and answers, and its memory then. Fresh, started
# again on the same data, several at once, and through the envtest assets. The goal is 100 ms each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -n "${BENCH_BINARY:-}" ] || cmake --build build/release --target holdfast -- --quiet
exec python3 bench/suite_bench.py "${BENCH_BINARY:-build/release/bin/holdfast}" "${@:-50}"
