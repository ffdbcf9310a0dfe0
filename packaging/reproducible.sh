#!/bin/sh
# Builds all packages of HEAD in two clones, which have nothing in common but the sources and the downloaded modules:
# another directory, build cache, time zone, mask of file modes and day. Both must have the same hashes.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
git clone -q . "$dir/one"
mkdir -p "$dir/quite/another"
(umask 077 && git clone -q . "$dir/quite/another/place")
find "$dir/quite" -exec touch -h -d '2001-02-03 04:05:06' {} +

make -s -C "$dir/one" dist > "$dir/one.log"
(umask 077 && TZ=Asia/Tokyo GOCACHE="$dir/cache" make -s -C "$dir/quite/another/place" dist > "$dir/other.log")

cat "$dir/one/dist/SHA256SUMS"
diff "$dir/one/dist/SHA256SUMS" "$dir/quite/another/place/dist/SHA256SUMS"
echo "both builds are the same"
