#!/usr/bin/env bash
# run_fuzz.sh PROGRAM NAME: a short run of one fuzz target, seeded from tests/vectors according to its name.
# Runs are deterministic, so that results depend only on the change. HOLDFAST_FUZZ_SECONDS explores new inputs for that long
# instead. A finding is saved next to the program and fails the run.
set -euo pipefail
program=$1 name=$2
here=$(cd "$(dirname "$0")" && pwd)
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT

seed_encoded() { # suffix of the base64 files
  for file in "$here"/vectors/*."$1".b64; do base64 -d <"$file" >"$corpus/$(basename "$file" .b64)"; done
}
case $name in
  protobuf*) seed_encoded pb ;;
  cbor*) seed_encoded cbor ;;
  yaml*) cp "$here"/vectors/*.yaml "$corpus" ;;
  text*) for text in 0 500m 1.5Gi 1e3 -2k 1h15m30.918s 2us; do printf %s "$text" >"$corpus/$text"; done ;;
  json* | typed* | transcode*) cp "$here"/vectors/*.json "$corpus" ;;
esac
if [ -d "$here/corpus/$name" ]; then cp -r "$here/corpus/$name/." "$corpus"; fi

if [ -n "${HOLDFAST_FUZZ_SECONDS:-}" ]; then
  length=(-max_total_time="$HOLDFAST_FUZZ_SECONDS")
else
  length=(-seed=1 -runs=20000)
fi
"$program" "${length[@]}" -max_len=65536 -rss_limit_mb=2048 -timeout=20 \
  -artifact_prefix="$(dirname "$program")/$name-" -print_final_stats=1 "$corpus"
