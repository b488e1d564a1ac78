#!/usr/bin/env bash
# Installs the library into an empty directory and builds a small program against it: install_test.sh BUILD_DIR COMPILER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" --component library >/dev/null
# Only the directory holdfast/, with only public headers in it.
[ "$(ls "$work/prefix/include")" = holdfast ]
[ ! -e "$work/prefix/include/holdfast/ownership/engine.h" ]
cmake -G Ninja -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$2" >/dev/null
cmake --build "$work/build" >/dev/null
diff "$here/consumer/output" <("$work/build/consumer")
cmake -G Ninja -S "$here/../examples" -B "$work/examples" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_COMPILER="$2" >/dev/null
cmake --build "$work/examples" >/dev/null
