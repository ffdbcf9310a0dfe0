#!/bin/sh
# After a removal. The data stay, also when the configuration is purged: nobody gets them back from a package manager.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
if [ "$1" = purge ] && [ -d /var/lib/gotycoon ]; then
	echo "gotycoon: the databases in /var/lib/gotycoon are left; remove them yourself if nobody needs them"
fi
