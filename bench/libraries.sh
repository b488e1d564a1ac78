#!/usr/bin/env bash
# Our event loop, HTTP/1.1, log and metrics, compared with Boost.Asio and Beast, spdlog and prometheus-cpp: ./dev bench libraries [COUNT]
# Installs those packages, which nothing else needs. Results and conclusions are in
# docs/decisions/0004-own-event-loop-log-and-metrics.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
./dev install libboost1.81-dev libspdlog-dev libfmt-dev prometheus-cpp-dev
cmake -DHOLDFAST_BENCH_LIBRARIES=ON build/release >/dev/null
cmake --build build/release --target libraries_bench -- --quiet
for what in http log metrics; do
  echo "== $what"
  build/release/bench/libraries_bench "$what" "${@:1:1}"
done
