#!/bin/bash
# build.sh BUILD VERSION - makes BUILD/trainyard_VERSION_ARCH.deb of the programs that are in BUILD.
#
# The programs, the C API, the units, completions, manual page and documents; what they need of Debian is read
# from the programs themselves.  Symbols are stripped.
set -eu
build=$1 version=$2
here=$(dirname "$(readlink -f "$0")")
arch=$(dpkg --print-architecture)
top=$build/deb
root=$top/trainyard

rm -rf "$top"
mkdir -p "$root/DEBIAN" "$root/lib/systemd/system" "$root/etc/default" "$top/debian"
make -s install BUILD="$build" DESTDIR="$(readlink -f "$root")" PREFIX=/usr
strip "$root"/usr/bin/* "$root"/usr/lib/*.so.*
install -m 644 "$here"/../systemd/*.service "$root/lib/systemd/system"
install -m 644 "$here/default" "$root/etc/default/trainyard"
install -m 640 "$here/default-agent" "$root/etc/default/trainyard-agent"
install -m 755 "$here/postinst" "$root/DEBIAN"
printf '/etc/default/trainyard\n/etc/default/trainyard-agent\n' >"$root/DEBIAN/conffiles"

printf 'Source: trainyard\nPackage: trainyard\n' >"$top/debian/control"
depends=$(cd "$top" && dpkg-shlibdeps -O --ignore-missing-info -ltrainyard/usr/lib trainyard/usr/bin/* trainyard/usr/lib/*.so.* 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || { echo "build.sh: dpkg-shlibdeps named no package"; exit 1; }
cat >"$root/DEBIAN/control" <<CONTROL
Package: trainyard
Version: $version
Architecture: $arch
Maintainer: The Trainyard developers <trainyard@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Depends: $depends, passwd
Suggests: libucx0
Section: science
Priority: optional
Description: training as a service
 Queues training jobs, finds nodes for them, runs them on its own dataflow
 runtime, restarts what dies from its checkpoint, and shows loss, placement
 and time of each step live in a browser.
CONTROL
dpkg-deb --root-owner-group -Zxz --build "$root" "$build" >/dev/null
ls -l "$build/trainyard_${version}_$arch.deb" | awk '{printf "%s: %.1f MB\n", $NF, $5 / 1e6}'
