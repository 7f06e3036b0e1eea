#!/bin/bash
# sync_test.sh - a disk that fails to sync (F14): what could not be stored is not told, the server says so and ends, and
# comes back with all that was told; a checkpoint that could not be synced is none, and training goes on.
. "$(dirname "$0")/lib.sh"
! grep -qE "__(asan|tsan)_init" "$trainyard" || { echo "skip sync: a sanitizer has to be loaded first"; exit 0; }
${CC:-cc} -shared -fPIC -o "$work/fail_sync.so" "$here/fail_sync.c" || { echo "skip sync: no compiler"; exit 0; }
export FAIL_SYNC=$work/failing
failing() { echo "$1" >"$work/failing.next"; mv "$work/failing.next" "$work/failing"; }
mended() { rm "$work/failing"; }
with() { LD_PRELOAD=$work/fail_sync.so "$@"; } # not in the background: it would be a shell whose pid we know
gone() { ! kill -0 "$pid" 2>/dev/null; }
part() { field "$(api GET "/api/v1/jobs/$1")" "$2"; }

# --- the two databases ---
with serve yard --cpus 2 --backoff-ms 100
digits "$dir" || { echo "FAIL digits: no dataset"; failed=1; exit 1; }
spec='{"name": "long", "seed": 3, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 64, "activation": "relu"}, {"layer": "Dense", "units": 10}]},
    "data": {"dataset": "digits", "batch_size": 100}, "checkpoint": {"every_steps": 500}, "train": {"steps": 60000, "eval_every": 5000}}'
long=$(field "$(api POST /api/v1/jobs "$spec")" number)
check runs wait_for 20 is_state "$long" running
for file in control metrics; do
    failing "$file.db"
    if [ $file = control ]; then
        api POST /api/v1/jobs '{"name": "told", "command": ["true"]}' -H "Idempotency-Key: once" >/dev/null 2>&1
        check control_not_told same "$(case $(status) in 20*) echo told ;; esac)" ""
    fi
    check ${file}_server_ends wait_for 10 gone
    gone || kill "$pid"
    wait "$pid"
    check ${file}_exit_status same "$?" 74
    check ${file}_says_so has "$(tail -n 3 "$dir.log")" "file=$file.db msg=\"the disk failed to sync"
    mended
    with again --cpus 2 --backoff-ms 100
    check ${file}_comes_back wait_for 5 is_state "$long" running
    check ${file}_check has "$("$trainyard" db check --dir "$dir")" "nothing is wrong"
done
first=$(api POST /api/v1/jobs '{"name": "told", "command": ["true"]}' -H "Idempotency-Key: once")
check told_once same "$(field "$(api GET '/api/v1/jobs?q=told')" items 0 number)" "$(field "$first" number)"
check job_ends wait_for 120 is_state "$long" succeeded
check job_in_one_attempt same "$(part "$long" attempt)" 1
cat >"$work/points.py" <<PY
import os, sqlite3, struct, sys
sys.path.insert(0, "$here")
from events import scalars
kept = "$dir/jobs/$long/events"
written = [point for path, _, files in os.walk(kept) for file in files for point in scalars(f"{path}/{file}")]
rows = sqlite3.connect("$dir/metrics.db").execute(
    "select name, step, value from points join series on series.id = points.series where name not glob 'hw/*' and job = $long").fetchall()
print(len(written) > 50, sorted(written) == sorted((name, step, struct.pack("<f", value)) for name, step, value in rows))
PY
check every_point_once same "$(python3 "$work/points.py")" "True True"

# --- files that jobs bring ---
sum=$(printf hello | sha256sum | cut -d' ' -f1)
for where in /files/ "$sum" "files/${sum:0:2}$"; do
    failing "$where"
    api PUT "/api/v1/files/$sum" hello >/dev/null
    check upload_refused same "$(status)" 500
    check upload_says has "$(cat "$work/body")" "Input/output error"
    mended
    api GET "/api/v1/files/$sum" >/dev/null
    check upload_is_not_there same "$(status)" 404
done
api PUT "/api/v1/files/$sum" hello >/dev/null
check upload_is_taken_then same "$(status)" 200
stop TERM

# --- an agent's journal ---
serve other --no-agent --backoff-ms 200
join=$("$trainyard" token create --join --dir "$dir")
LD_PRELOAD=$work/fail_sync.so "$trainyard" agent --server "$(field "$(cat "$dir/server.json")" agents)" --token "$join" --dir "$work/node" --name n1 --cpus 1 >"$work/node.log" 2>&1 &
pids+=("$!")
joined() { has "$(api GET /api/v1/nodes)" '"state":"joined"'; }
check joins wait_for 20 joined
failing attempts/
job=$(field "$(api POST /api/v1/jobs '{"command": ["echo", "done"], "restart": {"max": 50}}')" number)
tried() { [ "$(part "$job" attempt)" -ge 2 ]; }
check agent_starts_nothing wait_for 10 tried
check agent_says_why has "$(api GET "/api/v1/jobs/$job/attempts")" "Input/output error"
mended
check agent_starts_it_then wait_for 10 is_state "$job" succeeded
stop TERM

# --- checkpoints ---
cat >"$work/spec.json" <<'END'
{"seed": 3, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits", "batch_size": 20},
 "checkpoint": {"every_steps": 50, "keep_latest": 9}, "train": {"steps": 400}}
END
train() { with "$build/trainyard-task" train "$work/spec.json" --data "$work/digits.made" --out "$work/$1" --resume --threads 1 >"$work/$1.log" 2>&1; }
steps() { sed -n 's/^all_model_checkpoint_paths: "model.ckpt-\(.*\)"/\1/p' "$work/$1/checkpoints/checkpoint" | tr '\n' ' '; }
check undisturbed train whole
failing ckpt-100
check checkpoint_lost_training_goes_on train some
check checkpoint_lost_is_told has "$(cat "$work/some.log")" "no checkpoint after step 100"
check checkpoint_lost_is_none same "$(steps some)" "50 150 200 250 300 350 400 "
check checkpoint_lost_same_bits cmp "$work/some/checkpoints/model.ckpt-400.data-00000-of-00001" "$work/whole/checkpoints/model.ckpt-400.data-00000-of-00001"
failing ckpt-400
check last_checkpoint_lost_fails same "$(train last; echo $?)" 1
check last_checkpoint_lost_says has "$(cat "$work/last.log")" "Input/output error"
mended
check last_checkpoint_lost_goes_on train last
check last_checkpoint_lost_same_bits cmp "$work/last/checkpoints/model.ckpt-400.data-00000-of-00001" "$work/whole/checkpoints/model.ckpt-400.data-00000-of-00001"
check nothing_half_is_left same "$(find "$work/some/checkpoints" "$work/last/checkpoints" -name '*tmp*' -o -name '*tempstate*')" ""
