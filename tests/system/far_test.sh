#!/bin/bash
# far_test.sh - one model over nodes with networks of their own: what they learn, who is let in, a node that is cut off
# from all others, and comes back.
#
# Runs in a network namespace, with one more for each node and a bridge between them.
# alone
if [ -z "${FAR_INSIDE:-}" ]; then
    command -v ip >/dev/null && command -v nsenter >/dev/null || { echo "skip far: no ip or nsenter here"; exit 0; }
    command -v openssl >/dev/null || { echo "skip far: no openssl to make certificates with"; exit 0; }
    flags=-n
    [ "$(id -u)" = 0 ] || flags=-rn
    unshare $flags ip link add name probe type bridge 2>/dev/null || { echo "skip far: no network namespaces here"; exit 0; }
    FAR_INSIDE=1 exec unshare $flags "$0"
fi
. "$(dirname "$0")/lib.sh"
ip link set lo up
ip link add name yard type bridge && ip addr add 10.77.0.1/24 dev yard && ip link set yard up
cd "$work" || exit 1

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ours.key -out ours.pem -subj /CN=yard -days 2 \
    -addext subjectAltName=IP:10.77.0.1 2>/dev/null
serve yard --no-agent --agents-host 10.77.0.1 --agents-cert ours.pem --agents-key ours.key --suspect-ms 1000 --lost-ms 4000 \
    --grace-ms 5000 --backoff-ms 100
export TRAINYARD_DIR=$dir
agents=$(field "$(cat "$dir/server.json")" agents)
join=$("$trainyard" token create --join)
declare -A holder
node() { # NAME NUMBER : a machine with one CPU
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
inside() { local name=$1; shift; nsenter -t "${holder[$name]}" -n "$@"; }
node a 11
node b 12
node c 13
node d 14
joined() { [ "$("$trainyard" nodes --json | grep -o '"state": *"joined"' | wc -l)" = 4 ]; }
check four_nodes wait_for 20 joined
stay() { for _ in $(seq 30); do joined || return 1; sleep 0.05; done; }
check nobody_is_suspected stay

"$trainyard" dataset make digits digits >/dev/null
"$trainyard" dataset add digits --from digits >/dev/null
spec() { # NAME BATCH STEPS TASKS
    cat >"$1.json" <<END
{"name": "$1", "seed": 5, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 16, "activation": "tanh"}, {"layer": "Dense", "units": 10}]},
 "data": {"dataset": "digits", "batch_size": $2}, "checkpoint": {"every_steps": 50},
 "train": {"steps": $3, "optimizer": {"name": "SGD", "learning_rate": 0.05}}, "tasks": $4}
END
}
alone() { timeout 120 "$trainyard" train "$1.json" --data digits --out "$1.alone" --threads 1 --json 2>/dev/null | tail -n 1; }
near() { python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(abs(a - b) > 2e-5 * abs(b))' "$1" "$2" || { echo "  found $1, wanted $2"; false; }; }
loss() { field "$(api GET "/api/v1/jobs/$1/metrics?names=loss")" series 0 values -1; }
# ROLE:INDEX NODE, of the last attempt
tasks_of() {
    api GET "/api/v1/jobs/$1/attempts" | python3 -c '
import json, sys
for t in max(json.load(sys.stdin)["items"], key=lambda a: a["attempt"])["tasks"]:
    print(t["task"], t["node"])'
}
processes() { # EPOCH : the tasks of an attempt
    local p
    for p in $(pgrep -f "$build/trainyard-task train spec.json"); do
        tr '\0' '\n' <"/proc/$p/environ" | grep -qx "TRAINYARD_EPOCH=$1" && echo "$p"
    done
}
variable() { tr '\0' '\n' <"/proc/$1/environ" | sed -n "s/^$2=//p"; }

# --- three nodes ---
spec three 16 60 '{"ps": 1, "worker": 2}'
"$trainyard" submit three.json >/dev/null
check it_ends wait_for 60 is_final three
check it_succeeds is_state three succeeded
spec whole 32 60 '{"worker": 1}'
check it_learns_what_one_task_learns near "$(loss three)" "$(field "$(alone whole)" metrics loss)"
check its_tasks_were_on_three_nodes same "$(tasks_of three | awk '{print $2}' | sort -u | wc -l)" 3

# --- who else knocks ---
spec long 16 4000 '{"ps": 1, "worker": 2}'
"$trainyard" submit long.json >/dev/null
check it_runs wait_for 30 is_state long running
number=$(field "$(api GET /api/v1/jobs/long)" number)
check it_keeps_a_checkpoint wait_for 30 test -e "$dir/jobs/$number/checkpoints/checkpoint"
epoch=$(variable "$(pgrep -f "$build/trainyard-task train spec.json" | head -n 1)" TRAINYARD_EPOCH)
first=$(processes "$epoch" | head -n 1)
address=$(python3 -c 'import json, sys; c = json.loads(sys.argv[1]); print(c["cluster"]["ps"][0])' "$(variable "$first" TF_CONFIG)")
check addresses_are_the_nodes has "$address" 10.77.0.1
tasks_file=$(readlink "/proc/$first/cwd")/tasks.pem
# knock [CERTIFICATE KEY] : whether it speaks HTTP/2 with us; without arguments in the clear, with "" over TLS
knock() { python3 - "$address" "$@" <<'END'
import socket, ssl, sys
host, port = sys.argv[1].rsplit(":", 1)
try:
    with socket.create_connection((host, int(port)), timeout=5) as s:
        if len(sys.argv) > 2:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            context.set_alpn_protocols(["h2"])
            if sys.argv[2]:
                context.load_cert_chain(*sys.argv[2:])
            s = context.wrap_socket(s)
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        print("speaks" if s.recv(9)[3:4] == b"\4" else "refuses")
except (OSError, TimeoutError):
    print("refuses")
END
}
check one_of_the_tasks_may_speak same "$(knock "$tasks_file")" speaks
check in_the_clear_nobody_may same "$(knock)" refuses
check without_a_certificate_neither same "$(knock "")" refuses
check nor_with_another_one same "$(knock ours.pem ours.key)" refuses
check the_key_is_its_owners_alone same "$(stat -c %a "$tasks_file")" 400

# --- cut off ---
victim=$(tasks_of long | awk '$1 == "worker/1" {print $2}')
ip link set "to-$victim" down
attempt() { [ "$(field "$(api GET /api/v1/jobs/long)" attempt)" = "$1" ]; }
check tried_again wait_for 60 attempt 2
check on_other_nodes wait_for 60 is_state long running
cut=$(processes "$epoch")
ip link set "to-$victim" up
check what_was_cut_off_is_ended wait_for 60 sh -c "! pgrep -f '$build/trainyard-task train spec.json' | xargs -I{} cat /proc/{}/environ | tr '\\0' '\\n' | grep -qx TRAINYARD_EPOCH=$epoch"
check it_had_been_there test -n "$cut"
check all_nodes_are_back wait_for 30 joined
check it_ends_again wait_for 120 is_final long
check it_succeeds_again is_state long succeeded
spec quiet 32 4000 '{"worker": 1}'
check as_undisturbed near "$(loss long)" "$(field "$(alone quiet)" metrics loss)"
