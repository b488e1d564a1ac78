#!/usr/bin/env bash
# Builds the program of the packages in build/portable: statically linked, so that it runs on any distribution.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
libraries=build/portable/libraries
mkdir -p "$libraries"
# Debian has no static ISA-L: it is built from the source of the installed package, which apt verifies.
version=$(dpkg-query -W -f='${Version}' libisal-dev)
if [ "$(cat "$libraries/isal.version" 2>/dev/null)" != "$version" ]; then
  ./dev install nasm make
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  chmod 755 "$work"
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  mirror=$(apt-cache policy libisal-dev | awk '$2 ~ /^https?:/ {print $2; exit}')
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
  mkdir -p "$work/lists/partial" "$work/source"
  options=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$work/lists" -o Acquire::Retries=3)
  apt-get "${options[@]}" update -qq
  (cd "$work/source" && apt-get "${options[@]}" source -qq --download-only "libisal=$version")
  tar -xf "$work"/source/libisal_*.orig.tar.* -C "$work" --one-top-level=isal --strip-components=1
  echo "package: building ISA-L $version"
  make -s -C "$work/isal" -f Makefile.unx lib units='igzip crc' >/dev/null
  cp "$work/isal/bin/isa-l.a" "$libraries/libisal.a"
  echo "$version" >"$libraries/isal.version"
fi
commit=$(git rev-parse HEAD)
date=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)
cmake --preset portable -DHOLDFAST_COMMIT="$commit" -DHOLDFAST_DATE="$date" >/dev/null
cmake --build build/portable --target holdfast libholdfast libholdfast_client apply_headers -- "$@"
