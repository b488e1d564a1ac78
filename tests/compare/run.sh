#!/usr/bin/env bash
# run.sh [--access|--policies] HOLDFAST [options]: starts Holdfast and a real kube-apiserver, and compares their responses
# (compare.py), with --access their authorization decisions (access.py), or with --policies the effects of admission
# policies (policies.py). KUBE_APISERVER, KUBE_CONTROLLER_MANAGER and ETCD name the programs (default: those on the PATH).
set -euo pipefail
compare=compare.py controllers=none
case $1 in
--access) compare=access.py && shift ;;
--policies) compare=policies.py controllers=validatingadmissionpolicy-status-controller && shift ;;
esac
for program in "${KUBE_APISERVER:-kube-apiserver}" "${ETCD:-etcd}"; do
  command -v "$program" >/dev/null || { echo "run.sh: $program not found (tests/kubernetes/build builds it)" >&2 && exit 1; }
done
holdfast=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
pids=()
cleanup() {
  # SIGKILL: kube-apiserver takes minutes to exit once its etcd is gone, and the data is discarded anyway.
  for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$dir"
}
trap cleanup EXIT
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
answers() { # answers URL
  for _ in $(seq 600); do
    curl -skf -H 'Authorization: Bearer compare' "$1" >/dev/null && return
    sleep 0.1
  done
  echo "run.sh: $1 does not respond" >&2
  exit 1
}

echo 'compare,admin,admin,"system:masters"' >"$dir/tokens.csv"
openssl genrsa -out "$dir/sa.key" 2048 2>/dev/null
client=$(free_port) peer=$(free_port) theirs=$(free_port) ours=$(free_port)
"${ETCD:-etcd}" --data-dir "$dir/etcd" --listen-client-urls "http://127.0.0.1:$client" \
  --advertise-client-urls "http://127.0.0.1:$client" --listen-peer-urls "http://127.0.0.1:$peer" \
  --initial-advertise-peer-urls "http://127.0.0.1:$peer" --initial-cluster "default=http://127.0.0.1:$peer" \
  >"$dir/etcd.log" 2>&1 &
pids+=($!)
"${KUBE_APISERVER:-kube-apiserver}" --etcd-servers "http://127.0.0.1:$client" --bind-address 127.0.0.1 \
  --secure-port "$theirs" --cert-dir "$dir/certs" --token-auth-file "$dir/tokens.csv" --authorization-mode RBAC \
  --allow-privileged=true --service-cluster-ip-range 10.0.0.0/16 \
  --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$dir/sa.key" \
  --service-account-signing-key-file "$dir/sa.key" --disable-admission-plugins ServiceAccount,Priority \
  --feature-gates CBORServingAndStorage=true >"$dir/kube-apiserver.log" 2>&1 &
pids+=($!)
# These gates are off by default in kube-apiserver.
"$holdfast" serve --data-dir "$dir/data" --listen "127.0.0.1:$ours" --controllers="$controllers" \
  --feature-gates AllowUnsafeMalformedObjectDeletion=false,OwnershipAPI=false \
  --token-auth-file "$dir/tokens.csv" --disable-admission-plugins=ServiceAccount,Priority \
  --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range 10.0.0.0/16 >"$dir/holdfast.log" 2>&1 &
pids+=($!)
answers "https://127.0.0.1:$ours/readyz"
answers "https://127.0.0.1:$theirs/readyz"
if [ "$compare" = policies.py ] && manager=$(command -v "${KUBE_CONTROLLER_MANAGER:-kube-controller-manager}"); then
  cat >"$dir/kubeconfig" <<EOF
{"apiVersion": "v1", "kind": "Config", "current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
 "clusters": [{"name": "it", "cluster": {"server": "https://127.0.0.1:$theirs", "insecure-skip-tls-verify": true}}], "users": [{"name": "it", "user": {"token": "compare"}}]}
EOF
  "$manager" --kubeconfig "$dir/kubeconfig" --controllers "$controllers" --leader-elect=false --secure-port 0 >"$dir/manager.log" 2>&1 &
  pids+=($!)
  set -- --status "$@"
fi
python3 "$here/$compare" --ours "https://127.0.0.1:$ours" --theirs "https://127.0.0.1:$theirs" --token compare "$@"
