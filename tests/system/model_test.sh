#!/bin/bash
# model_test.sh - what a job has learned is listed, fetched and used, by the command line alone.
source "$(dirname "$0")/lib.sh"
serve yard --cpus 2
digits "$dir"
job=$(field "$(api POST /api/v1/jobs '{"name": "learns", "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "seed": 3,
    "data": {"dataset": "digits", "batch_size": 20}, "train": {"loss": "sparse_categorical_crossentropy", "steps": 300, "eval_every": 100},
    "checkpoint": {"every_steps": 100, "keep_latest": 2}}')" number)
api POST /api/v1/jobs '{"command": ["true"]}' >/dev/null
check "it learns" wait_for 60 is_state "$job" succeeded
model() { "$trainyard" model "$@" --dir "$dir" 2>&1; }
check "models are listed" has "$(model list)" "learns  succeeded   300  val_loss"
check "... as JSON" python3 -c 'import json, sys; [one] = json.loads(sys.argv[1])["items"]; assert one["name"] == "learns" and one["checkpoints"][-1]["step"] == 300, one' "$(model list --json)"
check "... and one of them" python3 -c 'import json, sys; assert json.loads(sys.argv[1])["items"][-1]["files"]' "$(model show "$job" --json)"
check "programs are none" same "$(model list | wc -l)" 2
check "its checkpoints are shown" has "$(model show "$job")" "300"
check "... with what is not kept" has "$(model show "$job")" "not kept"
to=$work/model
check "it is fetched" same "$(model download "$job" "$to")" "$to/model.ckpt-300"
check "... whole" same "$(cat "$to"/model.ckpt-300.* | sha256sum)" "$(cat "$dir/jobs/$job/checkpoints"/model.ckpt-300.* | sha256sum)"
python3 -c 'import json; print(json.dumps({"instances": [[[[0.5]] * 28] * 28]}))' >"$work/one.json"
check "... and predicts" has "$("$trainyard" predict "$to/model.ckpt-300" "$work/one.json" --top 1 2>&1)" "0"
check "by its step" same "$(model download "$job" "$to" --step 200)" "$to/model.ckpt-200"
index=$to/model.ckpt-300.index
cp "$index" "$work/whole"; head -c 100 "$work/whole" >"$index.part"; rm "$index"
model download "$job" "$to" >/dev/null
check "what was broken off is gone on with" cmp -s "$index" "$work/whole"
check "... and no part is left" [ ! -e "$index.part" ]
{ cat "$work/whole"; echo more; } >"$index.part"; rm "$index"
check "what is no part of it is told" has "$(model download "$job" "$to")" "5 bytes more than the server has; remove it"
check "... and left alone" [ ! -e "$index" ]
rm "$index.part"
check "a step that is not kept" has "$(model download "$job" "$to" --step 100)" "is not kept any more"
check "a step that never was" has "$(model download "$job" "$to" --step 7)" "no checkpoint of step"
check "a job that has none" has "$(model download $((job + 1)) "$to")" "no checkpoint whose files are there"
check "a folder that cannot be made" has "$(model download "$job" /proc/none)" "cannot make /proc/none"
