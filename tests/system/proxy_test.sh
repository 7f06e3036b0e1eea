#!/bin/bash
# proxy_test.sh - tasks of one model whose connections are slow, silent one way or both, heal, or are reset: slower and
# never wrong, and nobody waits longer than connections are believed in without a sign of life.
# Faults of docs/reliability.md: F19 F20.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
"$trainyard" dataset make digits "$work/digits" --train 1000 --test 200 >/dev/null
# As a server gives them: who shares a certificate is one of us, and is asked for signs of life.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out tasks.pem -subj /CN=tasks.trainyard -days 2 \
    -addext subjectAltName=DNS:tasks.trainyard 2>/dev/null && cat key.pem >>tasks.pem || { echo "skip proxy: no openssl to make certificates with"; exit 0; }
# run NAME STEPS : a chief, which sees worker 1 and the ps through proxies; its last line goes to NAME.end.  What is
# written to NAME.worker and NAME.ps those proxies obey.
run() {
    local name=$1 steps=$2 chief worker ps config
    chief=$(free_port) worker=$(free_port) ps=$(free_port)
    cat >"$name.json" <<END
{"name": "$name", "seed": 5, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 16, "activation": "tanh"}, {"layer": "Dense", "units": 10}]},
 "data": {"dataset": "digits", "batch_size": 16}, "checkpoint": {"every_steps": 20},
 "train": {"steps": $steps, "optimizer": {"name": "SGD", "learning_rate": 0.05, "momentum": 0.9}}, "tasks": {"ps": 1, "worker": 2}}
END
    for to in worker ps; do
        mkfifo "$name.$to"
        python3 "$here/proxy.py" "${!to}" <>"$name.$to" >"$name.$to.port" 2>>proxy.log &
        pids+=("$!")
        wait_for 10 test -s "$name.$to.port"
    done
    config='{"cluster": {"worker": ["127.0.0.1:'$chief'", "127.0.0.1:'$worker'"], "ps": ["127.0.0.1:'$ps'"]}, "task": {"type": "'
    for one in 'worker", "index": 1' 'ps", "index": 0'; do
        TF_CONFIG="$config$one}}" "$build/trainyard-task" train "$name.json" --certificate tasks.pem --threads 1 >"$name.other" 2>&1 &
        pids+=("$!")
    done
    config='{"cluster": {"worker": ["127.0.0.1:'$chief'", "127.0.0.1:'$(cat "$name.worker.port")'"], "ps": ["127.0.0.1:'$(cat "$name.ps.port")'"]}, "task": {"type": "worker", "index": 0}}'
    sleep "${late:-0}"
    TF_CONFIG=$config timeout 120 "$build/trainyard-task" train "$name.json" --data digits --out "$name" --certificate tasks.pem --threads 1 --json 2>"$name.log" | tail -n 1 >"$name.end" &
    chief_pid=$!
    pids+=("$chief_pid")
}
say() { echo "$2" 1<>"$1"; } # does not wait for a proxy that is gone
same_bits() { same_checkpoint "$1/checkpoints" "$2/checkpoints" "$3"; }
newest() { sed -n 's/^model_checkpoint_path: .*-\([0-9]*\)"$/\1/p' "$1/checkpoints/checkpoint"; }
ends() { wait_for "$2" test -s "$1.end"; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# --- slow; and a chief whom the others have asked for before he was there ---
late=1.3 run quick 40
ends quick 60
check a_late_chief_trains test -e quick/checkpoints/model.ckpt-40.index
run slow 40
say slow.worker "delay 10"
say slow.ps "delay 10"
start=$(now_ms)
check slow_ends ends slow 60
check it_was_slow test $(($(now_ms) - start)) -ge 800
check same_bits_as_quick same_bits slow quick 40
longest() { strings "$1"/events.out.tfevents.* | grep -o '"receive_us": [0-9]*' | sort -t' ' -k2 -n | tail -n 1 | cut -d' ' -f2; }
check time_on_the_way_is_told test "$(longest slow)" -ge 8000 -a "$(longest quick)" -lt 8000

# --- silent for a while, and then not ---
run heals 1000000
check it_trains wait_for 30 test -e heals/checkpoints/checkpoint
say heals.worker "stall both"
sleep 3
before=$(newest heals)
say heals.worker flow
goes_on() { [ "$(newest heals)" -gt $((before + 40)) ]; }
check it_goes_on wait_for 20 goes_on

# --- reset: between two steps it costs nothing, within one it ends it ---
resets() { say heals.ps reset; test -s heals.end; }
check reset_ends_the_step wait_for 20 resets
check reset_names_the_task has "$(cat heals.end)" "/job:ps/replica:0/task:0"
check reset_is_unavailable has "$(cat heals.end)" UNAVAILABLE

# --- silent for good: one way, the other, both, of each task; all at the same time ---
for case in "worker out" "worker in" "worker both" "ps out" "ps in"; do
    read -r to way <<<"$case"
    run "silent_${to}_$way" 1000000
done
for case in "worker out" "worker in" "worker both" "ps out" "ps in"; do
    read -r to way <<<"$case"
    name=silent_${to}_$way
    wait_for 30 test -e "$name/checkpoints/checkpoint"
    say "$name.$to" "stall $way"
done
start=$(now_ms)
for case in "worker out" "worker in" "worker both" "ps out" "ps in"; do
    read -r to way <<<"$case"
    name=silent_${to}_$way
    check "${name}_ends" ends "$name" 40
    check "${name}_is_named" has "$(cat "$name.end")" "/job:$to/replica:0/task:$([ "$to" = ps ] && echo 0 || echo 1)"
    check "${name}_is_unavailable" has "$(cat "$name.end")" UNAVAILABLE
done
echo "  all had ended $(($(now_ms) - start)) ms after the silence"
