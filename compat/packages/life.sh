#!/bin/sh
# The life of a package: life.sh DIR, which holds two versions of it. Runs in mount, process and network namespaces of its own.
dir=$1
mount --make-rprivate /
mkdir "$dir/copy"
mount -t tmpfs tmpfs "$dir/copy"
mkdir "$dir/copy/upper" "$dir/copy/work" "$dir/copy/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/copy/upper,workdir=$dir/copy/work" "$dir/copy/root"
mount -t proc proc "$dir/copy/root/proc"
mount --rbind /dev "$dir/copy/root/dev"
mkdir -p "$dir/copy/root/packages"
cp "$dir"/*.deb "$dir/copy/root/packages/"
ip link set lo up

cat > "$dir/copy/root/life" <<'LIFE'
set -eu
say() { echo "life: $*"; }

# start runs the unit's command as the unit's user, in the unit's directory.
start() {
	unit=/lib/systemd/system/gotycoon.service
	line=$(sed -n 's/^ExecStart=//p' $unit)
	user=$(sed -n 's/^User=//p' $unit)
	place=$(sed -n 's/^WorkingDirectory=//p' $unit)
	(cd "$place" && exec runuser -u "$user" -- $line) > /server.log 2>&1 &
	tries=0
	until ktremotemgr report > /dev/null 2>&1; do
		tries=$((tries + 1))
		if [ $tries -gt 600 ]; then cat /server.log; exit 1; fi
		sleep 0.1
	done
}
stop() {
	pkill -TERM -x ktserver
	wait
}
holds() {
	got=$(ktremotemgr get "$1")
	[ "$got" = "$2" ] || { say "$1 is '$got', not '$2'"; exit 1; }
}
tells() {
	case "$2" in
	*"$3"*) ;;
	*) say "$1 says '$2', not '$3'"; exit 1 ;;
	esac
}

say install
dpkg -i /packages/gotycoon_0.1.0_*.deb
id gotycoon
[ "$(stat -c %U:%a /var/lib/gotycoon)" = gotycoon:750 ]
[ "$(stat -c %G:%a /etc/gotycoon/gotycoon.toml)" = gotycoon:640 ]
ktserver config check -config /etc/gotycoon/gotycoon.toml
start
ktremotemgr set first "before the upgrade"

say upgrade while the server runs, with a changed configuration
printf '\n# changed by hand\nuasi = 0.5\nadmin = "127.0.0.1:1990"\n' >> /etc/gotycoon/gotycoon.toml
dpkg -i /packages/gotycoon_0.1.1_*.deb
ktremotemgr set second "by the old one"
stop
grep -q 'changed by hand' /etc/gotycoon/gotycoon.toml
start
holds first "before the upgrade"
holds second "by the old one"

say one version everywhere
ours=$(ktserver --version | sed -n 2p)
tells "the package" "$(dpkg-query -W -f '${Version}' gotycoon)" 0.1.1
tells "ktserver, first line" "$(ktserver --version | sed -n 1p)" "Kyoto Tycoon 0.9.56b (2.19) on Linux (Kyoto Cabinet 1.2.76a)"
tells ktserver "$ours" "gotycoon 0.1.1 (revision "
for program in ktremotemgr kttimedmgr ktutilmgr ktreplsql; do
	tells $program "$($program --version | tail -n 1)" "$ours"
done
revision=$(echo "$ours" | sed 's/.*(revision \([^,]*\),.*/\1/')
tells report "$(ktremotemgr report)" "conf_kt_features: (epoll)(gotycoon 0.1.1)(revision $revision)"
tells /version "$(curl -s http://127.0.0.1:1990/version)" "gotycoon 0.1.1"
tells /version "$(curl -s http://127.0.0.1:1990/version)" "revision $revision"
tells "the console" "$(curl -s http://127.0.0.1:1990/api/server)" '"version":"0.1.1"'
tells "the console" "$(curl -s http://127.0.0.1:1990/api/server)" "\"revision\":\"$revision\""
tells metrics "$(curl -s http://127.0.0.1:1990/metrics | grep ^gotycoon_build_info)" "revision=\"$revision\",version=\"0.1.1\""
tells "the bill of materials" "$(cat /usr/share/doc/gotycoon/sbom.cdx.json)" '"version": "0.1.1"'

say its licences
tells copyright "$(head -n 1 /usr/share/doc/gotycoon/copyright)" "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
tells LICENSE "$(cat /usr/share/doc/gotycoon/LICENSE)" "Copyright 2026 The gotycoon authors"
tells NOTICE "$(cat /usr/share/doc/gotycoon/NOTICE)" "the standard library of Go: BSD-3-Clause"

say killed, and removed
ktremotemgr set third "before the end"
pkill -KILL -x ktserver
wait || true
dpkg -r gotycoon
! command -v ktserver
[ -f /var/lib/gotycoon/casket.kct ]
grep -q 'changed by hand' /etc/gotycoon/gotycoon.toml
dpkg -P gotycoon
[ ! -e /etc/gotycoon/gotycoon.toml ]
[ -f /var/lib/gotycoon/casket.kct ]

say installed again
dpkg -i /packages/gotycoon_0.1.1_*.deb
start
holds first "before the upgrade"
holds second "by the old one"
holds third "before the end"
stop
echo "the package has lived well"
LIFE
chroot "$dir/copy/root" sh /life
