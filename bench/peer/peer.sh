# Sourced by benchmarks that compare with other programs: builds them from their Go modules if go is installed.
# Binaries are cached in HOLDFAST_PEER_HOME (default: the user's cache directory), outside the checkout.
peer_home=${HOLDFAST_PEER_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-peer}
peer_source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
kubernetes_version=$(awk '$1 == "k8s.io/kubernetes" {print $2}' "$peer_source/kubernetes/go.mod")

# Whether peers can be built; if not, prints what is skipped: peer_available "the comparison with ...".
peer_available() {
  command -v go >/dev/null && return
  echo "bench: go is not installed: skipping $1" >&2
  return 1
}

# Prints the directory of kube-apiserver and etcd, after building them if necessary (a few minutes, once).
peer_kubernetes() {
  local bin=$peer_home/$kubernetes_version program
  mkdir -p "$bin"
  for program in etcd kube-apiserver; do
    [ -x "$bin/$program" ] && continue
    echo "bench: building $program $kubernetes_version from its Go modules into $bin" >&2
    local stamp="-X k8s.io/component-base/version"
    (cd "$peer_source/kubernetes" &&
      go build -mod=readonly -o "$bin/$program" -ldflags "-s -w $stamp.gitVersion=$kubernetes_version $stamp.gitMajor=1 $stamp.gitMinor=$(cut -d. -f2 <<<"$kubernetes_version")" "./$program") || return
  done
  echo "$bin"
}

# Prints the path of one of our own Go programs next to this script (engine, cel), after building it.
peer_program() {
  mkdir -p "$peer_home"
  (cd "$peer_source/$1" && go build -mod=readonly -o "$peer_home/$1" .) || return
  echo "$peer_home/$1"
}
