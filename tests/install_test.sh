#!/usr/bin/env bash
# Installs the library part into a fresh folder and builds a small program against it: install_test.sh BUILD_DIR COMPILER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" >/dev/null
cmake -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$2" >/dev/null
cmake --build "$work/build" >/dev/null
test "$("$work/build/consumer")" = '{"kind":"Pod","metadata":{"name":"web"}}'
