#!/bin/bash
# capi_test.sh - the C API as others get it: installed, found by pkg-config, linked by the examples.
set -u
build=${TRAINYARD_BUILD:-build}
root=$(dirname "$(realpath "$0")")/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() { # check NAME CONDITION...
    local name=$1; shift
    if "$@"; then echo "ok $name"; else echo "FAIL $name: $*"; tail -n 20 "$work"/*.log 2>/dev/null; failed=1; fi
}
says() { grep -q -- "$2" "$work/$1" || { echo "  nothing like '$2' in $1"; cat "$work/$1"; false; }; }

case $build in
*address* | *thread*) echo "skip capi: a sanitized library wants a sanitized program"; exit 0 ;;
esac
command -v pkg-config >/dev/null || { echo "skip capi: no pkg-config"; exit 0; }

make -s -C "$root" BUILD="$build" PREFIX="$work/usr" install-library >"$work/install.log" 2>&1
check capi_installs test $? = 0
export PKG_CONFIG_PATH=$work/usr/lib/pkgconfig LD_LIBRARY_PATH=$work/usr/lib
check capi_exports_only_its_names test "$(nm -D --defined-only "$work/usr/lib/libtrainyard.so.0" | grep -cv ' ty_')" = 0
check capi_header_is_all_that_is_installed test "$(find "$work/usr/include" -type f | wc -l)" = 1

# Every function of the header is there.
grep -oE '\bty_[a-z0-9_]+\(' "$work/usr/include/runtime/trainyard.h" | tr -d '(' | sort -u >"$work/declared"
nm -D --defined-only "$work/usr/lib/libtrainyard.so.0" | awk '{print $3}' | sort >"$work/defined"
check capi_has_all_it_declares test "$(comm -23 "$work/declared" "$work/defined" | grep -vx ty_library_init | wc -l)" = 0

cc() { # cc OUTPUT FILE... : as a stranger would, with the strictest warnings
    local out=$1; shift
    ${CC:-gcc} -std=c11 -Wall -Wextra -Wpedantic -Werror -o "$out" "$@" >>"$work/cc.log" 2>&1
}
flags() { pkg-config "$@" trainyard; }

# shellcheck disable=SC2046
check capi_example_compiles cc "$work/fit" "$root/examples/c-api/fit.c" $(flags --cflags --libs) -lm
"$work/fit" "$work/fit.pb" >"$work/fit.log" 2>&1
check capi_example_runs test $? = 0
check capi_example_fits_the_line says fit.log 'y = 3.000 x -1.000'

# shellcheck disable=SC2046
check capi_header_is_c++ ${CXX:-g++} -x c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only $(flags --cflags) "$work/usr/include/runtime/trainyard.h"

# shellcheck disable=SC2046
check custom_op_compiles cc "$work/libclamp.so" -shared -fPIC "$root/examples/custom-op/clamp.c" $(flags --cflags) -lm
# shellcheck disable=SC2046
check custom_op_user_compiles cc "$work/use" "$root/examples/custom-op/use.c" $(flags --cflags --libs) -lm
"$work/use" "$work/libclamp.so" "$work/use.pb" >"$work/use.log" 2>&1
check custom_op_runs test $? = 0
check custom_op_has_shape_and_values says use.log 'rank 1, 3 elements: -1.9998 0.4898 1.9998'
"$work/use" "$work/no-such.so" >"$work/none.log" 2>&1
check custom_op_library_that_is_not_there test $? = 1
check custom_op_says_which says none.log 'cannot load .*no-such.so'

# --- the graphs that they left, shown by the task ---
task=$(realpath "$build/trainyard-task")
show() { "$task" graph show "$@" >"$work/show.log" 2>&1; code=$?; }
show "$work/fit.pb" --batch 64 --memory --nodes
check graph_show_runs test $code = 0
check graph_show_tells_of_passes says show.log 'chain .* nodes  -[0-9]'
check graph_show_names_what_was_fused says show.log '+ .* (_Elementwise) for .*, '
check graph_show_tells_memory says show.log 'memory: [0-9]* bytes at the peak, during .*; 8 of variables'
check graph_show_tells_what_is_left says show.log 'update_slope'
show "$work/fit.pb" --batch 64 --json --without chain,update
check graph_show_json python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
names = [p["pass"] for p in report["passes"]]
assert names[0] == "prune" and "fold" in names and "chain" not in names and "update" not in names, names
kept = {n["name"] for n in report["kept"]}
for p in report["passes"]:
    for n in p["added"]: assert n["op"], n
assert report["passes"][-1]["nodes"] == len(report["kept"])
assert not any(n["op"] == "_Elementwise" for n in report["kept"])
memory = report["memory"]
assert memory["variable_bytes"] == 8 and memory["feed_bytes"] == 512, memory
assert memory["peak_bytes"] == sum(t["bytes"] for t in memory["tensors"]), memory
assert memory["tensors"][0]["bytes"] >= 256 and memory["at"], memory' "$work/show.log"
show "$work/fit.pb" --fetch loss:0 --json
check graph_show_fetches python3 -c '
import json, sys
assert "update_slope" not in {n["name"] for n in json.load(open(sys.argv[1]))["kept"]}' "$work/show.log"
show "$work/use.pb"
check graph_show_misses_an_op test $code = 2
check graph_show_says_which_op says show.log "SoftClamp"
show "$work/use.pb" --load-library "$work/libclamp.so" --nodes
check graph_show_with_a_library test $code = 0
check graph_show_has_its_op says show.log 'y = SoftClamp(x)'
show "$work/fit.pb" --without nonsense
check graph_show_unknown_pass test $code = 2
check graph_show_lists_passes says show.log 'the passes are: identity, '
show "$work/nowhere.pb"
check graph_show_no_file test $code = 2
head -c 300 /dev/urandom >"$work/noise.pb"
show "$work/noise.pb"
check graph_show_noise test $code = 2
exit $failed
