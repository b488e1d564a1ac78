#!/usr/bin/env bash
# replay_test.sh HOLDFAST TOPIC...: starts a server on an empty embedded store and replays the recordings of the topics
# (folders beside this script) against it. Prints the first difference of each scenario that differs.
set -euo pipefail
holdfast=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
pid=
cleanup() {
  [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
  [ -z "$pid" ] || wait "$pid" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

# As the recorded server was run: no controllers, and without the plugins that need them.
"$holdfast" serve --data-dir "$dir/data" --listen 127.0.0.1:0 --controllers=none \
  --disable-admission-plugins=ServiceAccount,Priority >"$dir/log" 2>&1 &
pid=$!
for _ in $(seq 600); do
  [ ! -s "$dir/data/kubeconfig" ] || break
  kill -0 "$pid" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
  sleep 0.05
done
server=$(sed -n 's/^ *server: *//p' "$dir/data/kubeconfig" | tr -d '"')

# Custom resources: set HOLDFAST_REPLAY_CRDS once the server has them.
files=()
for topic in "$@"; do
  for file in "$here/$topic"/*.json; do
    if [ -z "${HOLDFAST_REPLAY_CRDS:-}" ] && grep -q customresourcedefinitions "$file"; then continue; fi
    files+=("$file")
  done
done
python3 "$here/replay.py" --server "$server" --cert "$dir/data/pki/admin.crt" --key "$dir/data/pki/admin.key" \
  --ca "$dir/data/pki/ca.crt" --fast "${files[@]}"
