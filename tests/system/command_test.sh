#!/bin/bash
# command_test.sh - jobs that run any program: what it finds, what becomes of what it writes, how it ends.
# Faults of docs/reliability.md: F5 F9.
. "$(dirname "$0")/lib.sh"

serve yard --cpus 4 --fake-gpus 4 --grace-ms 1000 --backoff-ms 100
export TRAINYARD_DIR=$dir
check node_joins wait_for 10 has "$(api GET /api/v1/nodes)" joined
mkdir "$work/here" && cd "$work/here" || exit 1

# --- run: its output is ours, byte for byte, and so is its exit code ---
check run_output same "$("$trainyard" run -- sh -c 'echo one; echo two >&2; printf last' 2>/dev/null)" "$(printf 'one\nlast')"
check run_errors same "$("$trainyard" run -- sh -c 'echo one; echo two >&2' 2>&1 >/dev/null)" two
"$trainyard" run -- sh -c 'exit 7' 2>"$work/said"
check run_exit_code same "$?" 7
check run_says_why has "$(cat "$work/said")" "exit code 7"
"$trainyard" run -- no-such-program 2>"$work/said"
check run_no_such_program same "$?" 127
check run_no_such_program_says has "$(cat "$work/said")" "cannot run no-such-program: No such file or directory"
check tried_once same "$(field "$(api GET /api/v1/jobs?limit=1)" items 0 attempt)" 1
check run_here same "$("$trainyard" run -- pwd)" "$work/here"
"$trainyard" run --workdir /no/such/folder -- true 2>"$work/said"
check run_no_such_folder has "$(cat "$work/said")" "cannot go to the folder /no/such/folder"
check run_arguments same "$("$trainyard" run -- printf '%s|' a "b c" "d'e" '$HOME' -- --dir)" "a|b c|d'e|\$HOME|--|--dir|"
check run_env same "$("$trainyard" run --env A=1 --env "B=x y" -- sh -c 'echo "$A $B"')" "1 x y"
check run_job_is_listed has "$("$trainyard" jobs)" printf
check program_is_told same "$(field "$(api GET /api/v1/jobs?limit=1)" items 0 program)" "sh -c 'echo \"\$A \$B\"'"

# --- what a program finds ---
env=$("$trainyard" run --gpus 2 -- env)
for word in TRAINYARD_OUT=/ TRAINYARD_CHECKPOINTS=/ RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=2 \
    CUDA_VISIBLE_DEVICES=0,1 PYTHONUNBUFFERED=1 'TF_CONFIG={"cluster":{"worker":["127.0.0.1:2'; do
    check "finds_${word%%=*}" has "$env" "$word"
done
check no_gpus_given has "$("$trainyard" run -- env)" "$(printf 'CUDA_VISIBLE_DEVICES=\n')"
"$trainyard" run --detach --gpus 1 -- sleep 300 >/dev/null
wait_for 10 sh -c "'$trainyard' jobs | grep -q 'sleep.*running'"
check gpus_are_not_shared has "$("$trainyard" run --gpus 2 -- env)" CUDA_VISIBLE_DEVICES=1,2
"$trainyard" kill sleep >/dev/null

# --- files go along ---
mkdir -p lib/deep
echo 'import helper; print(helper.word, open("lib/deep/data.txt").read().strip())' >main.py
echo 'word = "hello"' >helper.py
echo 'from below' >lib/deep/data.txt
check files same "$("$trainyard" run --file main.py --file helper.py --file lib -- python3 main.py)" "hello from below"
echo '{"name": "spec", "command": ["python3", "main.py"], "files": ["main.py", "helper.py", "lib"]}' >"$work/here/job.json"
check submit_with_files has "$(cd / && "$trainyard" submit "$work/here/job.json" --watch)" succeeded
check files_in_spec has "$(api GET /api/v1/jobs/spec/spec)" "\"main.py\": \"$(sha256sum main.py | cut -d' ' -f1)\""
api POST /api/v1/jobs '{"command": ["true"], "files": {"a": "'"$(printf '0%.0s' $(seq 64))"'"}}' >/dev/null
check unknown_file_refused same "$(status)" 400
check unknown_file_says has "$(cat "$work/body")" "has not been uploaded"
sum=$(printf hello | sha256sum | cut -d' ' -f1)
api PUT "/api/v1/files/$sum" hello >/dev/null
check file_put same "$(status)" 200
check file_known same "$(field "$(api GET "/api/v1/files/$sum")" size)" 5
api PUT "/api/v1/files/$sum" hullo >/dev/null
check wrong_hash_refused same "$(status)" 400
head -c 3000000 /dev/urandom >large.bin
check large_file same "$("$trainyard" run --file large.bin -- sha256sum large.bin)" "$(sha256sum large.bin)"

# --- metrics: event files of any writer, in any folder below $TRAINYARD_OUT, once each ---
cp "$here/events_write.py" .
"$trainyard" run --name events -- python3 events_write.py >/dev/null
metrics=$(api GET "/api/v1/jobs/events/metrics")
check metrics python3 - "$metrics" <<'P'
import json, sys
series = {s["name"]: (s["steps"], s["values"]) for s in json.loads(sys.argv[1])["series"]}
assert sorted(series) == ["loss", "train/epoch_loss", "validation/epoch_loss"], sorted(series)
assert series["loss"][0] == list(range(100)), series["loss"][0]
assert series["train/epoch_loss"][1] == [0.5, 0.25], series
assert series["validation/epoch_loss"][1] == [0.75, 0.5], series
P
check last_value has "$(field "$(api GET /api/v1/jobs/events)" last loss)" "0.00999"
# A second attempt that goes back to step 20 and reports other steps: what the first said of steps from there on is gone.
cat >again.py <<'P'
from events_write import *
first = os.environ["TRAINYARD_ATTEMPT"] == "1"
file = opened()
for step in range(0, 40) if first else range(20, 60, 3):
    record(file, event(step, v1(b"loss", 1.0 if first else 2.0)))
time.sleep(0.3 if first else 0)
os.kill(os.getpid(), 9) if first else None
P
"$trainyard" run --name again -- python3 again.py >/dev/null 2>&1
check metrics_of_a_second_attempt python3 - "$(api GET /api/v1/jobs/again/metrics)" <<'P'
import json, sys
loss, = json.loads(sys.argv[1])["series"]
assert loss["steps"] == list(range(20)) + list(range(20, 60, 3)), loss["steps"]
assert loss["values"] == [1.0] * 20 + [2.0] * 14, loss["values"]
P

# --- artifacts ---
"$trainyard" run --name keeps -- sh -c 'cd $TRAINYARD_OUT/artifacts; mkdir sub; printf abc >a.txt; : >sub/empty; cp '"$work/here/large.bin"' sub/; ln -s /etc/passwd link'
list=$(api GET /api/v1/jobs/keeps/artifacts)
check artifacts same "$(python3 -c 'import json, sys; print([(i["task"], i["path"], i["size"]) for i in json.loads(sys.argv[1])["items"]])' "$list")" \
    "[('worker/0', 'a.txt', 3), ('worker/0', 'sub/empty', 0), ('worker/0', 'sub/large.bin', 3000000)]"
check artifact_text same "$(api GET '/api/v1/jobs/keeps/artifacts/content?path=a.txt')" abc
curl -sS -H "Authorization: Bearer $token" -o got.bin "$url/api/v1/jobs/keeps/artifacts/content?task=worker/0&path=sub/large.bin"
check artifact_bytes cmp got.bin large.bin
for path in ../../../../etc/passwd /etc/passwd a.txt/.. .part-1/worker-0/a.txt; do
    api GET "/api/v1/jobs/keeps/artifacts/content?path=$path" >/dev/null
    check "artifact_path_$path" test "$(status)" -ge 400
done
"$trainyard" run --name fails -- sh -c 'echo x >$TRAINYARD_OUT/artifacts/x; kill -9 $$' 2>/dev/null

# --- cancel: TERM first, KILL for those that do not listen, and nothing is left ---
"$trainyard" run --detach --name deaf -- sh -c 'trap "" TERM; (trap "" TERM; setsid sleep 4711) & sleep 4711; sleep 4711' >/dev/null
check deaf_runs wait_for 10 is_state deaf running
wait_for 10 pgrep -f 'sleep 471[1]'
"$trainyard" cancel deaf >/dev/null
check deaf_cancelled wait_for 10 is_state deaf cancelled
check no_orphan sh -c '! pgrep -f "sleep 471[1]"'
"$trainyard" run --detach --name polite -- sh -c 'trap "echo bye; exit 0" TERM; while :; do sleep 0.05; done' >/dev/null
wait_for 10 is_state polite running
sleep 0.3
"$trainyard" cancel polite >/dev/null
check polite_cancelled wait_for 10 is_state polite cancelled
check polite_was_asked has "$("$trainyard" logs polite)" bye

# --- ends ---
"$trainyard" run --max-seconds 1 -- sh -c 'while :; do sleep 0.05; done' 2>"$work/said"
check time_is_up same "$(field "$(api GET /api/v1/jobs?limit=1)" items 0 code)" TIME
"$trainyard" run --detach --name crash -- sh -c 'echo $TRAINYARD_ATTEMPT; kill -SEGV $$' >/dev/null
check crash_ends wait_for 30 is_final crash
check crash_is_tried_again same "$(field "$(api GET /api/v1/jobs/crash)" attempt)" 6
check crash_says has "$(api GET /api/v1/jobs/crash)" "signal 11"

# --- a job that has ended before its events are read ---
for how in "" --json; do
    rm -f "$work/port"
    python3 "$here/ended_server.py" "$work/port" &
    quick=$!
    pids+=("$quick")
    wait_for 10 test -e "$work/port"
    told=$(TRAINYARD_URL=http://127.0.0.1:$(cat "$work/port") TRAINYARD_TOKEN=none timeout 20 "$trainyard" watch 1 $how)
    check "watch${how}_ends_well" same "$?" 0
    check "watch${how}_shows_the_end" has "$(tail -n 1 <<<"$told")" succeeded
    kill "$quick"
done
