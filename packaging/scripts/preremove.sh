#!/bin/sh
# Before a removal. An upgrade leaves the old server running until the new one is unpacked: it is restarted then.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now gotycoon.service
