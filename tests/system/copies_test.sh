#!/bin/bash
# copies_test.sh - nodes that do not see the server's folder (F7, F8): they fetch datasets and checkpoints, and ship what tasks write; a
# checkpoint is told when it is at the server whole; a node destroyed with its disk loses nothing of it; numbers are as with a shared folder.
. "$(dirname "$0")/lib.sh"
serve yard --no-agent --suspect-ms 500 --lost-ms 2000 --grace-ms 1000 --backoff-ms 100
digits "$dir"
join_token=$("$trainyard" token create --join --dir "$dir")
agents=$(field "$(cat "$dir/server.json")" agents)
# Where the folder can be hidden from an agent it is, so that it finds out by itself; else it is told.
if unshare -m true 2>/dev/null; then hidden=1; else hidden=0; fi
declare -A of
# start NAME [OPTION...] : an agent in a session of its own
start() {
    local name=$1; shift
    local command=("$trainyard" agent --server "$agents" --token "$join_token" --dir "$work/$name" --name "$name" --cpus 2 "$@")
    if ((hidden)); then
        setsid unshare -m sh -c 'mount -t tmpfs none "$1" && shift && exec "$@"' sh "$dir" "${command[@]}" >>"$work/$name.log" 2>&1 &
    else
        setsid "${command[@]}" --no-shared-folder >>"$work/$name.log" 2>&1 &
    fi
    pids+=("$!")
    of[$name]=$!
}
node_is() { same "$(field "$(api GET "/api/v1/nodes/$1")" state)" "$2" >/dev/null; }
node_of() { api GET "/api/v1/jobs/$1/tasks" | python3 -c 'import json, sys; print(json.load(sys.stdin)["items"][-1]["node"])'; }
attempt_of() { field "$(api GET "/api/v1/jobs/$1")" attempt; }
start one
start two
check both_join wait_for 20 node_is one joined
check both_are_there wait_for 20 node_is two joined

# train NAME [MORE OF THE SPEC [MORE OF TRAIN [STEPS [DATASET]]]]
train() {
    api POST /api/v1/jobs "{\"name\": \"$1\", \"seed\": 5, \"data\": {\"dataset\": \"${5:-digits}\", \"batch_size\": 50}, \"restart\": {\"max\": 3}, \"checkpoint\": {\"every_steps\": 100},
        \"model\": {\"layers\": [{\"layer\": \"Flatten\"}, {\"layer\": \"Dense\", \"units\": 256, \"activation\": \"relu\"}, {\"layer\": \"Dense\", \"units\": 10}]}${2:-},
        \"train\": {\"steps\": ${4:-8000}, \"optimizer\": {\"name\": \"Adam\", \"learning_rate\": 0.001}${3:-}}}" >"$work/made"
    field "$(cat "$work/made")" number || cat "$work/made" >&2
}
# run NAME COMMAND_JSON [MORE] : a job that is a program
run() {
    api POST /api/v1/jobs "{\"name\": \"$1\", \"command\": $2${3:-}}" >"$work/made"
    field "$(cat "$work/made")" number || cat "$work/made" >&2
}
said() { api GET "/api/v1/jobs/$1/logs?task=worker/0&stream=${2:-stdout}&offset=0"; }
ends() { check "$1_ends" wait_for 90 is_final "$2"; check "$1_$3" is_state "$2" "$3" || { api GET "/api/v1/jobs/$2"; api GET "/api/v1/jobs/$2/logs"; }; }
checkpoints() { ls "$dir/jobs/$1/checkpoints/"model.ckpt-*.index 2>/dev/null; }

# --- one that nothing happens to ---
calm=$(train calm) && [ -n "$calm" ] || exit 1
ends calm "$calm" succeeded
check copy_was_used has "$(ls -d "$work/one/datasets/"digits-* "$work/two/datasets/"digits-* 2>/dev/null)" "/datasets/digits-"
check nothing_is_half_there same "$(find "$dir/jobs/$calm" "$work/one/datasets" "$work/two/datasets" -name '*.part' -o -name '*.tmp' -o -path '*/.ship-*' -type f 2>/dev/null)" ""
told() { api GET "/api/v1/jobs/$1/checkpoints" | python3 -c 'import json, sys; print(*[one["step"] for one in json.load(sys.stdin)["items"]])'; }
check all_are_told has "$(told "$calm")" "7900 8000"
check files_of_the_last has "$(api GET "/api/v1/jobs/$calm/checkpoints/8000")" "model.ckpt-8000.data-00000-of-00001"
check old_ones_went same "$(checkpoints "$calm" | wc -l)" "$(python3 -c 'import re, sys; print(len(re.findall("all_model_checkpoint_paths", open(sys.argv[1]).read())))' "$dir/jobs/$calm/checkpoints/checkpoint")"

# --- its node is destroyed with its disk ---
job=$(train struck)
has_checkpoint() { [ -n "$(checkpoints "$job")" ]; }
check has_a_checkpoint wait_for 60 has_checkpoint
node=$(node_of "$job")
other=$([ "$node" = one ] && echo two || echo one)
victims=()
for attempt in "$work/$node"/attempts/*/; do
    [ -e "$attempt/exit.json" ] || victims+=("$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$attempt/shim.json")")
done
kill -KILL "${of[$node]}"
for shim in "${victims[@]}"; do kill -KILL $(ps -o pid= --ppid "$shim") "$shim" 2>/dev/null; done
rm -rf "${work:?}/$node"
check it_was_under_way is_state "$job" running
ends struck "$job" succeeded
check in_its_second_attempt same "$(attempt_of "$job")" 2
check on_the_other_node same "$(node_of "$job")" "$other"
check went_on has "$(said "$job")" "resumed after step"
check same_weights cmp "$dir/jobs/$job/checkpoints/model.ckpt-8000.data-00000-of-00001" "$dir/jobs/$calm/checkpoints/model.ckpt-8000.data-00000-of-00001"
start "$node"
check joins_anew wait_for 20 node_is "$node" joined

# --- paused and resumed, and another's weights ---
held=$(train held "" "" 100000)
job=$held
check held_has_a_checkpoint wait_for 60 has_checkpoint
api POST "/api/v1/jobs/$held:pause" '{}' >/dev/null
is_paused() { [ "$(field "$(api GET "/api/v1/jobs/$held")" paused)" = true ] && is_state "$held" queued; }
check is_paused wait_for 30 is_paused
state_names() { sed -n 's/^model_checkpoint_path: "\(.*\)"/\1/p' "$dir/jobs/$held/checkpoints/checkpoint"; }
check newest_is_there test -e "$dir/jobs/$held/checkpoints/$(state_names).data-00000-of-00001"
api POST "/api/v1/jobs/$held:resume" '{}' >/dev/null
goes_on() { has "$(said "$held")" "resumed after step $(state_names | sed 's/.*-//')" >/dev/null; }
newest=$(state_names)
state_names() { echo "$newest"; }
check resumed_from_it wait_for 30 goes_on
api POST "/api/v1/jobs/$held:cancel" '{}' >/dev/null
check is_cancelled wait_for 30 is_state "$held" cancelled
tuned=$(train tuned "" ", \"init\": {\"job\": $calm}" 20)
ends tuned "$tuned" succeeded
check took_its_weights has "$(said "$tuned"; said "$tuned" stderr)" "started from"

# --- tasks on both ---
group=$(train group ', "tasks": {"ps": {"replicas": 1, "cpus": 1}, "worker": {"replicas": 2, "cpus": 1}}' "" 300)
ends group "$group" succeeded
check group_has_checkpoints has "$(checkpoints "$group")" model.ckpt-300

# --- a program's own ---
program='["sh", "-c", "cd $TRAINYARD_CHECKPOINTS; ls; if [ -e state ]; then cat state deep/more; rm state; echo new >last; else mkdir deep; echo more >deep/more; echo half >x.tmp; echo kept >state; sleep 1.5; kill -9 $$; fi"]'
own=$(run own "$program" ', "restart": {"max": 1}')
ends own "$own" succeeded
logs=$(said "$own")
check found_what_it_kept has "$logs" kept
check and_below has "$logs" more
check removed_and_added same "$(cd "$dir/jobs/$own/checkpoints" && find . -type f ! -name epoch ! -name lock | sort | tr '\n' ' ')" "./deep/more ./last "

# --- room for copies ---
"$trainyard" dataset make digits "$work/more.made" --train 3000 --test 500 --seed 3 >/dev/null
"$trainyard" dataset add more --from "$work/more.made" --dir "$dir" >/dev/null
kill "${of[one]}" "${of[two]}"; wait "${of[one]}" "${of[two]}" 2>/dev/null
bytes() { python3 -c 'import json, sys; print(sum(f["bytes"] for f in json.load(open(sys.argv[1]))["files"]))' "$dir/datasets/$1/dataset.json"; }
start three --dataset-bytes "$(bytes more)"
check three_joins wait_for 20 node_is three joined
small=$(train small "" "" 20); ends small "$small" succeeded
check its_copy_is_kept has "$(ls "$work/three/datasets")" digits-
has_copy_of() { ls "$work/three/datasets" | grep -q "^$1-"; }
first=$(ls -di "$work"/three/datasets/digits-*)
again=$(train again "" "" 20); ends again "$again" succeeded
check and_used_again same "$(ls -di "$work"/three/datasets/digits-*)" "$first"
large=$(train large "" "" 20 more); ends large "$large" succeeded
check other_is_there has_copy_of more
check first_made_room eval '! has_copy_of digits'
"$trainyard" dataset make digits "$work/huge.made" --train 9000 --test 500 --seed 4 >/dev/null 2>&1
"$trainyard" dataset add huge --from "$work/huge.made" --dir "$dir" >/dev/null
huge=$(train huge "" "" 20 huge)
ends huge "$huge" failed
check says_what_it_keeps has "$(api GET "/api/v1/jobs/$huge")" "this node keeps $(bytes more) of datasets (--dataset-bytes)"

# --- tasks with users of their own ---
if [ "$(id -u)" != 0 ] || ! setpriv --reuid 61301 --clear-groups test -x "$build/trainyard-task" 2>/dev/null; then
    echo "skip users: only root can start tasks as other users, and these must be able to run $build/trainyard-task"
    exit 0
fi
kill "${of[three]}"; wait "${of[three]}" 2>/dev/null
chmod 711 "$work"
start four --task-user 61300-61399
check four_joins wait_for 20 node_is four joined
theirs=$(train theirs "" ", \"init\": {\"job\": $calm}" 200); ends theirs "$theirs" succeeded
check theirs_came has "$(checkpoints "$theirs")" ckpt-200
check they_read_the_copy same "$(stat -c %g "$work"/four/datasets/digits-*)" 61300
own=$(run own "$program" ', "restart": {"max": 1}'); ends own_as_another "$own" succeeded
check removed_and_added_too same "$(cd "$dir/jobs/$own/checkpoints" && find . -type f ! -name epoch ! -name lock | sort | tr '\n' ' ')" "./deep/more ./last "
link=$(run link '["sh", "-c", "cd $TRAINYARD_CHECKPOINTS; ln -s /etc/shadow stolen; ln -s /etc deep; echo own >own"]'); ends link "$link" succeeded
check links_are_left same "$(cd "$dir/jobs/$link/checkpoints" && find . -type f ! -name epoch ! -name lock)" "./own"
