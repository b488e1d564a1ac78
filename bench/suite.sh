#!/usr/bin/env bash
# Startup time and memory of one server per test, as in test suites: ./dev bench suite [COUNT [AT ONCE]]
# 50 servers, each with its own data directory and port: fresh, restarted on the same data, several at once, and through
# the envtest assets. The goal is 100 ms each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -n "${BENCH_BINARY:-}" ] || cmake --build build/release --target holdfast -- --quiet
exec python3 bench/suite_bench.py "${BENCH_BINARY:-build/release/bin/holdfast}" "${@:-50}"
