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

echo 'replay-token,admin,admin,"system:masters"' >"$dir/tokens.csv"
# As the recorded server was run: no controllers, and without the plugins that need them.
"$holdfast" serve --data-dir "$dir/data" --listen 127.0.0.1:0 --controllers=none --token-auth-file "$dir/tokens.csv" \
  --disable-admission-plugins=ServiceAccount,Priority >"$dir/log" 2>&1 &
pid=$!
for _ in $(seq 600); do
  [ ! -s "$dir/data/kubeconfig" ] || break
  kill -0 "$pid" 2>/dev/null || { cat "$dir/log" >&2; exit 1; }
  sleep 0.05
done
server=$(sed -n 's/^ *server: *//p' "$dir/data/kubeconfig" | tr -d '"')

waits() { # waits TOPIC/NAME: whether waiting.txt lists it
  local pattern
  while IFS=$'\t' read -r pattern _; do
    case $pattern in '#'* | '') continue ;; esac
    # shellcheck disable=SC2254  # The list holds patterns.
    case $1 in $pattern) return 0 ;; esac
  done <"$here/waiting.txt"
  return 1
}
files=()
for topic in "$@"; do
  for file in "$here/$topic"/*.json; do
    waits "$topic/$(basename "$file" .json)" || files+=("$file")
  done
done
python3 "$here/replay.py" --server "$server" --token replay-token --fast "${files[@]}"
