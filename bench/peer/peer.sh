# Sourced by benchmarks that compare with other programs: builds them from their Go modules if go is installed.
# Binaries are cached in HOLDFAST_PEER_HOME (default: the user's cache directory), outside the checkout.
peer_home=${HOLDFAST_PEER_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-peer}
peer_source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Whether peers can be built; if not, prints what is skipped: peer_available "the comparison with ...".
peer_available() {
  command -v go >/dev/null && return
  echo "bench: go is not installed: skipping $1" >&2
  return 1
}

# Prints the directory of kube-apiserver and etcd, after building them if necessary (a few minutes, once).
peer_kubernetes() { "$peer_source/../../tests/kubernetes/build" etcd kube-apiserver; }

# Prints the path of one of our own Go programs next to this script (engine, cel), after building it.
peer_program() {
  mkdir -p "$peer_home"
  (cd "$peer_source/$1" && go build -mod=readonly -o "$peer_home/$1" .) || return
  echo "$peer_home/$1"
}
