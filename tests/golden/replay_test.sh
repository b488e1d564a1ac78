#!/usr/bin/env bash
# replay_test.sh [--paced] [--etcd] [--as-user] [--gates LIST] HOLDFAST TOPIC...: starts a server on an empty store (embedded, or a real etcd: HOLDFAST_ETCD
# overrides the binary on the PATH) and replays the recordings of the topics (directories next to this script) against
# it. Prints the first difference of each scenario that differs.
# --paced: every write in a second of its own, as recorded, so that the times and the order of managedFields are compared
# as well. Takes as many seconds as the longest scenario has writes, since they wait at the same time.
set -euo pipefail
pace=(--fast)
[ "$1" != --paced ] || { pace=(--jobs 60); shift; }
on_etcd=
[ "$1" != --etcd ] || { on_etcd=1; shift; }
# Run as the recorded administrator, a member of system:masters, or as a user of the same name with only RBAC permissions.
groups=system:masters
[ "$1" != --as-user ] || { groups=testers; shift; }
gates=()
[ "$1" != --gates ] || { gates=(--feature-gates "$2"); shift 2; }
# Kubernetes has no such group.
gates+=(--feature-gates OwnershipAPI=false)
holdfast=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
pids=()
cleanup() {
  local pid
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$dir"
}
trap cleanup EXIT

store=()
if [ -n "$on_etcd" ]; then
  read -r client peer < <(PYTHONPATH="$here/../store" python3 -B -c 'from etcd import free_port; print(free_port(), free_port())')
  "${HOLDFAST_ETCD:-etcd}" --data-dir "$dir/etcd" --listen-client-urls "http://127.0.0.1:$client" \
    --advertise-client-urls "http://127.0.0.1:$client" --listen-peer-urls "http://127.0.0.1:$peer" \
    --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "default=http://127.0.0.1:$peer" >"$dir/etcd.log" 2>&1 &
  pids=($!)
  for _ in $(seq 300); do
    ! curl -sf "http://127.0.0.1:$client/health" >/dev/null || break
    kill -0 "${pids[0]}" 2>/dev/null || { cat "$dir/etcd.log" >&2; exit 1; }
    sleep 0.05
  done
  store=(--etcd-servers "http://127.0.0.1:$client")
fi

echo "replay-token,admin,admin,\"$groups\"" >"$dir/tokens.csv"
# Configured as the recorded server: no controllers, and without the plugins that depend on them.
"$holdfast" serve --data-dir "$dir/data" "${store[@]}" "${gates[@]}" --listen 127.0.0.1:0 --controllers=none --token-auth-file "$dir/tokens.csv" \
  --disable-admission-plugins=ServiceAccount,Priority >"$dir/log" 2>&1 &
pids=($! "${pids[@]}")
for _ in $(seq 600); do
  [ ! -s "$dir/data/kubeconfig" ] || break
  kill -0 "${pids[0]}" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
  sleep 0.05
done
server=$(sed -n 's/^ *server: *//p' "$dir/data/kubeconfig" | tr -d '"')

if [ "$groups" != system:masters ]; then
  pki=$dir/data/pki
  create() { # create COLLECTION OBJECT, as the administrator
    curl -fsS --cacert "$pki/ca.crt" --cert "$pki/admin.crt" --key "$pki/admin.key" -o /dev/null \
      -H 'content-type: application/json' -d "$2" "$server/apis/rbac.authorization.k8s.io/v1/$1"
  }
  create clusterroles '{"metadata":{"name":"testers"},"rules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"]},
    {"verbs":["*"],"nonResourceURLs":["*"]}]}'
  create clusterrolebindings '{"metadata":{"name":"testers"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",
    "kind":"ClusterRole","name":"testers"},"subjects":[{"kind":"Group","name":"testers"}]}'
  for _ in $(seq 100); do # A role takes effect shortly after it is written.
    ! curl -fsSo /dev/null --cacert "$pki/ca.crt" -H 'authorization: Bearer replay-token' "$server/metrics" 2>/dev/null || break
    sleep 0.05
  done
fi

files=()
for topic in "$@"; do
  for file in "$here/$topic"/*.json; do
    files+=("$file")
  done
done
python3 "$here/replay.py" --server "$server" --token replay-token "${pace[@]}" "${files[@]}"
# Every value is intact, and every value marked as being in normal form is.
[ -n "$on_etcd" ] || "$holdfast" store check "$dir/data"
