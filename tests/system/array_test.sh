#!/bin/bash
# array_test.sh - a grid of parameters: many jobs out of one spec, shown and ended together.
source "$(dirname "$0")/lib.sh"

serve yard --cpus 4 --grace-ms 1000
digits "$dir"
wait_for 20 has "$(api GET /api/v1/nodes)" '"joined"'
spec='{"name": "grid", "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]},
    "data": {"dataset": "digits"}, "train": {"loss": "sparse_categorical_crossentropy", "steps": 5},
    "array": {"/train/optimizer": [{"name": "SGD", "learning_rate": 0.1}, "Adam"], "/seed": [1, 2, 3]}}'
echo "$spec" >"$work/grid.json"

check "a plan says how many" same "$(field "$(api POST '/api/v1/jobs?dry_run=plan' "$spec")" array_count)" 6
check "... and that is all it does" same "$(field "$(api GET /api/v1/jobs)" items)" "[]"
says=$("$trainyard" submit "$work/grid.json" --dir "$dir")
check "it is submitted" has "$says" "trainyard jobs --array 1"
list=$(api GET '/api/v1/jobs?array=1')
check "as six jobs" same "$(python3 -c 'import json, sys; print(sorted((j["number"], j["name"], j["array"], j["array_index"]) for j in json.loads(sys.argv[1])["items"]) == [(i + 1, f"grid-{i}", 1, i) for i in range(6)])' "$list")" True
check "which say what they have of the grid" same "$(field "$(api GET /api/v1/jobs/5)" parameters)" '{"/train/optimizer": "Adam", "/seed": 2}'
check "... and are that" has "$(api GET /api/v1/jobs/5/spec)" '"seed": 2'
check "the command line lists them" same "$("$trainyard" jobs --array 1 --dir "$dir" | grep -c grid-)" 6
all_in() { same "$(field "$(api GET "/api/v1/arrays/$1")" states)" "$2"; }
check "they all run" wait_for 60 all_in 3 '{"succeeded": 6}'

has_text=$(api POST /api/v1/jobs "$(echo "$spec" | sed 's/"Adam"/"Adum"/')")
check "a wrong point is refused by its parameters" has "$has_text" 'job 3 of the array, {\"/train/optimizer\":\"Adum\",\"/seed\":1}'
check "... and its field" has "$has_text" '"pointer":"/train/optimizer'
check "... with all of it" same "$(field "$(api GET '/api/v1/jobs?limit=1')" items 0 number)" 6
check "too many are refused" has "$(api POST /api/v1/jobs "$(python3 -c 'import json; print(json.dumps({"command": ["true"], "array": {"/name": ["n%d" % i for i in range(1001)]}}))')")" "more than 1000 jobs"

# --- ending all of it ---
first=$(field "$(api POST /api/v1/jobs '{"command": ["sleep", "1000"], "array": {"/env/LR": ["1", "2", "3", "4", "5", "6"], "/name": ["a", "b"]}}' -H "Idempotency-Key: once")" number)
check "names may be parameters" same "$(field "$(api GET "/api/v1/jobs/$((first + 1))")" name)" b
check "the same request again is the same array" same "$(field "$(api POST /api/v1/jobs '{"command": ["sleep", "1000"], "array": {"/env/LR": ["1", "2", "3", "4", "5", "6"], "/name": ["a", "b"]}}' -H "Idempotency-Key: once")" number)" "$first"
check "as many run as there is room" wait_for 20 all_in "$first" '{"queued": 8, "running": 4}'
says=$("$trainyard" pause --array "$first" --dir "$dir")
check "all are paused" same "$says" "array $first: 12 of 12 jobs are paused"
check "... and leave their nodes" wait_for 20 all_in "$first" '{"queued": 12}'
paused() { api GET "/api/v1/jobs?array=$first&state=paused&limit=100" | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["items"]))'; }
check "... all of them" same "$(paused)" 12
says=$("$trainyard" resume --array "$first" --dir "$dir")
check "and go on" same "$says" "array $first: 12 of 12 jobs are not paused"
check "... as many as there is room" wait_for 30 all_in "$first" '{"queued": 8, "running": 4}'
says=$("$trainyard" cancel --array "$((first + 7))" --dir "$dir")
check "all are cancelled by any of them" same "$says" "array $first: 12 of 12 jobs had not ended"
check "... and end" wait_for 20 all_in "$first" '{"cancelled": 12}'
check "again, there is none to cancel" same "$(field "$(api POST "/api/v1/arrays/$first:cancel" '{}')" told)" 0
api POST /api/v1/jobs '{"command": ["true"], "name": "alone"}' >/dev/null
check "a job that is of none is no array" has "$(api GET /api/v1/arrays/alone)" "is not of an array"
