#!/bin/bash
# package_test.sh - the Debian package, unpacked into a folder: small, complete, its units valid, and the commands
# that they start serve a job, with an agent beside the server.
. "$(dirname "$0")/lib.sh"

case $build in */address* | */thread* | */clang*) echo "skip package: it is made of the plain build"; exit 0 ;; esac
command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null || { echo "skip package: there is no dpkg-dev"; exit 0; }
project=$(realpath "$here/../..")
make -s -C "$project" deb BUILD="$build" >"$work/deb.log" 2>&1 || { echo "FAIL package: not made"; failed=1; exit 1; }
package=$(ls "$build"/trainyard_*.deb)
check at_most_15_MB test "$(stat -c %s "$package")" -le 15000000
check it_says_what_it_needs has "$(dpkg-deb -f "$package" Depends)" "libsqlite3-0"
root=$work/root
dpkg-deb -x "$package" "$root"
dpkg-deb -e "$package" "$work/control"
check its_script_is_sh sh -n "$work/control/postinst"

# The units, with the folder's paths in place of the machine's.
mkdir "$work/units"
for unit in "$root"/lib/systemd/system/*.service; do
    sed "s|/usr/bin/|$root/usr/bin/|; s|/var/lib/|$work/var/|; s|^User=.*||; s|^Group=.*||" "$unit" >"$work/units/${unit##*/}"
done
if command -v systemd-analyze >/dev/null; then
    check units_are_valid same "$(systemd-analyze verify --man=no "$work"/units/*.service 2>&1 | grep -v 'file:///usr/share' | head -n 5)" ""
else
    echo "skip units_are_valid: there is no systemd-analyze"
fi
start() { # UNIT : what its ExecStart says, in this environment
    local line
    line=$(sed -n 's/^ExecStart=//p' "$work/units/$1.service")
    eval "exec $line"
}
mkdir "$work/var"
trainyard=$root/usr/bin/trainyard
check it_has_a_version has "$("$trainyard" version)" "$(dpkg-deb -f "$package" Version)"
TRAINYARD_SERVE="--port 0 --agents-port 0 --no-agent" start trainyard >"$work/server.out" 2>"$work/server.log" &
pids+=($!)
check the_server_starts wait_for 20 grep -q '^ready' "$work/server.out"
url=$(awk '{print $2}' "$work/server.out")
dir=$work/var/trainyard
token=$("$trainyard" token create --dir "$dir")
address=$(field "$(cat "$dir/server.json")" agents)
TRAINYARD_SERVER=$address TRAINYARD_TOKEN=$("$trainyard" token create --join --dir "$dir") TRAINYARD_AGENT="--cpus 2 --name other" \
    start trainyard-agent >"$work/agent.log" 2>&1 &
pids+=($!)
check the_page_is_there has "$(api GET /)" "<html"
job=$(field "$(api POST /api/v1/jobs '{"name": "a", "command": ["sh", "-c", "echo it runs"]}')" id)
check a_job_runs wait_for 30 is_state "$job" succeeded
check manual_is_there sh -c 'zcat "$1" | grep -q "^.SS submit"' _ "$root/usr/share/man/man1/trainyard.1.gz"
check completion_is_there grep -q trainyard "$root/usr/share/bash-completion/completions/trainyard"

# The C API, from its pkg-config file.
cat >"$work/use.c" <<C
#include <stdio.h>
#include <runtime/trainyard.h>
int main(void)
{
    struct ty_status *status = ty_status_new();
    printf("%d", ty_status_code(status));
    ty_status_free(status);
    return 0;
}
C
flags=$(PKG_CONFIG_PATH=$root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config --cflags --libs trainyard)
check a_program_links gcc -o "$work/use" "$work/use.c" -I"$root/usr/include" -L"$root/usr/lib" $flags
check the_program_runs same "$(LD_LIBRARY_PATH=$root/usr/lib "$work/use")" 0
