#!/bin/bash
# openapi_test.sh - each route answers as the server's own description says: status, media type, every field.
. "$(dirname "$0")/lib.sh"
serve yard --cpus 2 --webhooks-anywhere
digits "$dir" >/dev/null
api POST /api/v1/jobs '{"name": "m", "seed": 7, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits"},
    "train": {"optimizer": "SGD", "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"], "steps": 40}, "checkpoint": {"every_steps": 20}}' >/dev/null
model=$(field "$(cat "$work/body")" id)
api POST /api/v1/jobs '{"name": "p", "command": ["sh", "-c", "echo said; echo a >$TRAINYARD_OUT/artifacts/a"], "tasks": {"worker": {"cpus": 1}}}' >/dev/null
program=$(field "$(cat "$work/body")" id)
check model_ends wait_for 60 is_state "$model" succeeded
check program_ends wait_for 60 is_state "$program" succeeded
found=$(python3 "$here/openapi.py" "$url" "$token" "$model" "$program" 2>&1)
check every_answer_is_as_described test "${found%% *}" = all
[ $failed -eq 0 ] || echo "$found"
