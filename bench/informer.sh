#!/usr/bin/env bash
# Memory and CPU of an informer over 20,000 pods, in C++ and with client-go, with and without opting out: ./dev bench informer [PODS]
# In each format. client-go keeps managedFields, removes them by a transform of decoded objects, or opts out (clients/go/optout),
# also from a server that does not support it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pods=${1:-20000}
cmake --build build/release --target holdfast memory_bench informer_bench -- --quiet
dir=${BENCH_DIR:-.cache/bench-informer}
rm -rf "$dir"; mkdir -p "$dir"
command -v go >/dev/null || echo "go is not installed: skipping client-go"
if command -v go >/dev/null; then (cd bench/client/go && go build -o "$OLDPWD/$dir/client-go" .); fi
server=
stop() { [ -z "$server" ] || { kill "$server"; wait "$server" || true; server=; }; }
trap 'stop; rm -rf "$dir"' EXIT
build/release/bench/memory_bench fill "$dir/data/store" bench/data/pod.json --pods="$pods"

start() {
  stop
  rm -f "$dir/data/kubeconfig"
  build/release/bin/holdfast serve --data-dir "$dir/data" --listen 127.0.0.1:0 --controllers=none "$@" >"$dir/log" 2>&1 &
  server=$!
  until [ -s "$dir/data/kubeconfig" ]; do kill -0 "$server"; sleep 0.1; done
  export KUBECONFIG=$PWD/$dir/data/kubeconfig
}

# CBOR is behind feature gates in client-go.
export KUBE_FEATURE_ClientsAllowCBOR=true KUBE_FEATURE_ClientsPreferCBOR=true

row() {
  local name=$1; shift
  read -r count seconds cpu mb peak < <("$@")
  printf '%-34s %8s %9s %9s %9s %9s\n' "$name" "$count" "$seconds" "$cpu" "$mb" "$peak"
}

compare() { # compare "WAYS OF C++" "WAYS OF client-go"
  for encoding in protobuf json cbor; do
    for drop in $1; do row "C++ $encoding $drop" build/release/bench/informer_bench "$encoding" "$drop"; done
    [ -x "$dir/client-go" ] || continue
    for how in $2; do row "client-go $encoding $how" "$dir/client-go" informer "$encoding" "$how"; done
  done
}

printf '%-34s %8s %9s %9s %9s %9s\n' "" objects seconds "CPU s" "RSS MB" "peak MB"
start
compare "keep drop" "keep transform optout"
echo "a server that does not support the parameter:"
start --feature-gates=ManagedFieldsOptOut=false
compare drop "transform optout"
