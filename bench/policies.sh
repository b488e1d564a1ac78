#!/usr/bin/env bash
# CPU per ConfigMap update with 1, 100 and 1,000 admission policies installed: ./dev bench policies [--updates N] [--only holdfast]
# [--instructions]: on a busy machine, instructions of Holdfast instead of CPU, counted by callgrind.
# With policies for other resources, and with policies that all match the update; compared with kube-apiserver if go is
# installed. Goal: 1,000 policies that do not match add at most 5 %.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. bench/peer/peer.sh
cmake --build build/release --target holdfast -- --quiet
peer=
case " $* " in
  *" --only holdfast "*) ;;
  *) ! peer_available "the comparison with kube-apiserver" || peer=$(peer_kubernetes) ;;
esac
exec python3 bench/policies.py --bin build/release/bin/holdfast ${peer:+--peer "$peer"} "$@"
