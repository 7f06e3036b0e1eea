# far.sh - nodes with networks of their own, for tests that source it after their head comment: a network namespace for
# the server, one more for each node, and a bridge between them.
if [ -z "${FAR_INSIDE:-}" ]; then
    name=$(basename "$0" _test.sh)
    command -v ip >/dev/null && command -v nsenter >/dev/null || { echo "skip $name: no ip or nsenter here"; exit 0; }
    command -v openssl >/dev/null || { echo "skip $name: no openssl to make certificates with"; exit 0; }
    flags=-n
    [ "$(id -u)" = 0 ] || flags=-rn
    unshare $flags ip link add name probe type bridge 2>/dev/null || { echo "skip $name: no network namespaces here"; exit 0; }
    FAR_INSIDE=1 exec unshare $flags "$0"
fi
. "$(dirname "$0")/lib.sh"
ip link set lo up
# An address of its own: else it takes the lowest of its ports', and nodes that know it by another are not heard for a minute.
ip link add name yard address 02:00:0a:4d:00:01 type bridge && ip addr add 10.77.0.1/24 dev yard && ip link set yard up
cd "$work" || exit 1
declare -A holder

# serve_far [OPTION...] : a server for nodes at 10.77.0.1, and a dataset "digits"; sets agents and join
serve_far() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ours.key -out ours.pem -subj /CN=yard -days 2 \
        -addext subjectAltName=IP:10.77.0.1 2>/dev/null
    serve yard --no-agent --agents-host 10.77.0.1 --agents-cert ours.pem --agents-key ours.key --suspect-ms 1000 --lost-ms 4000 \
        --grace-ms 5000 --backoff-ms 100 "$@"
    export TRAINYARD_DIR=$dir
    agents=$(field "$(cat "$dir/server.json")" agents)
    join=$("$trainyard" token create --join)
    "$trainyard" dataset make digits digits >/dev/null
    "$trainyard" dataset add digits --from digits >/dev/null
}
inside() { local name=$1; shift; nsenter -t "${holder[$name]}" -n "$@"; }
node() { # NAME NUMBER : a machine with one CPU, at 10.77.0.NUMBER
    local name=$1 number=$2
    unshare -n sleep 1000 &
    holder[$name]=$!
    pids+=("$!")
    wait_for 5 sh -c "[ \$(readlink /proc/$!/ns/net) != \$(readlink /proc/self/ns/net) ]"
    ip link add "to-$name" type veth peer name eth0 netns "${holder[$name]}"
    ip link set "to-$name" master yard up
    inside "$name" ip link set lo up
    inside "$name" ip addr add "10.77.0.$number/24" dev eth0
    inside "$name" ip link set eth0 up
    nsenter -t "${holder[$name]}" -n "$trainyard" agent --server "$agents" --ca ours.pem --token "$join" --dir "$work/$name" --name "$name" --cpus 1 2>"$name.log" &
    pids+=("$!")
}
joined() { [ "$("$trainyard" nodes --json | grep -o '"state": *"joined"' | wc -l)" = "$1" ]; } # COUNT

spec() { # NAME BATCH STEPS TASKS
    cat >"$1.json" <<END
{"name": "$1", "seed": 5, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 16, "activation": "tanh"}, {"layer": "Dense", "units": 10}]},
 "data": {"dataset": "digits", "batch_size": $2}, "checkpoint": {"every_steps": 50},
 "train": {"steps": $3, "optimizer": {"name": "SGD", "learning_rate": 0.05}}, "tasks": $4}
END
}
alone() { timeout 120 "$trainyard" train "$1.json" --data digits --out "$1.alone" --threads 1 --json 2>/dev/null | tail -n 1; }
# "ROLE/INDEX NODE" of each task of the last attempt
tasks_of() {
    api GET "/api/v1/jobs/$1/attempts" | python3 -c '
import json, sys
for t in max(json.load(sys.stdin)["items"], key=lambda a: a["attempt"])["tasks"]:
    print(t["task"], t["node"])'
}
attempt_of() { field "$(api GET "/api/v1/jobs/$1")" attempt; }
variable() { tr '\0' '\n' <"/proc/$1/environ" | sed -n "s/^$2=//p"; }
knock() { python3 "$here/knock.py" "$@"; }
