#!/bin/sh
# After an installation or an upgrade, of the Debian and of the RPM package.
set -e
# dpkg says "configure", with the version before if there was one; rpm how many there are now.
case "$1" in
configure) [ -n "$2" ] && upgrade=yes || upgrade=no ;;
1) upgrade=no ;;
2) upgrade=yes ;;
*) exit 0 ;;
esac

if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers gotycoon.conf
else
	id gotycoon >/dev/null 2>&1 || useradd --system --home-dir /var/lib/gotycoon --no-create-home --shell /usr/sbin/nologin gotycoon
fi
install -d -o gotycoon -g gotycoon -m 0750 /var/lib/gotycoon
chgrp gotycoon /etc/gotycoon/gotycoon.toml

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
if [ "$upgrade" = yes ]; then
	systemctl try-restart gotycoon.service
else
	systemctl enable --now gotycoon.service
fi
