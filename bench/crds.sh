#!/usr/bin/env bash
# Time and memory of 2,000 CustomResourceDefinitions: ./dev bench crds [--count N] [--only holdfast]
# Created sequentially by one client; their memory, and how long a server with them takes to start; compared with
# kube-apiserver (200 CRDs) if go is installed. Goals: 10 s, 100 KB each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. bench/peer/peer.sh
cmake --build build/release --target holdfast -- --quiet
peer=()
case " $* " in
  *" --only holdfast "*) ;;
  *) ! peer_available "the comparison with kube-apiserver" || peer=(--peer "$(peer_kubernetes)" --peer-count 200) ;;
esac
exec python3 bench/crds.py --bin build/release/bin/holdfast "${peer[@]}" "$@"
