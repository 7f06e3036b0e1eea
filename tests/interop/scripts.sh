#!/bin/bash
# scripts.sh PYTHON - the examples of other frameworks as jobs of a server: their curves and what they keep.
# A framework that PYTHON does not have is left out with a line that says so.
. "$(dirname "$(realpath "$0")")/../system/lib.sh"

PATH=$(cd "$(dirname "$1")" && pwd):$PATH # absolute: jobs run in folders of their own
examples=$here/../../examples
serve yard --cpus 2
export TRAINYARD_DIR=$dir

# run_example NAME : to its end, at most three minutes
run_example() {
    local spec
    spec=$(python3 -c '
import json, os, sys
spec = json.load(open(sys.argv[1]))
spec["env"] = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
print(json.dumps(spec))' "$examples/$1/job.json")
    (cd "$examples/$1" && timeout 180 "$trainyard" submit - --watch <<<"$spec") >"$work/$1.out" 2>&1
}

if python3 -c 'import keras, tensorboard' 2>/dev/null; then
    check tensorflow_runs run_example tensorflow
    check tensorflow_curves python3 - "$(api GET /api/v1/jobs/tensorflow/metrics)" <<'P'
import json, sys
series = {one["name"]: one for one in json.loads(sys.argv[1])["series"]}
for name in "train/epoch_loss", "train/epoch_accuracy", "validation/epoch_loss", "validation/epoch_accuracy":
    assert series[name]["steps"] == [0, 1, 2, 3, 4], (name, sorted(series))
assert series["train/epoch_loss"]["values"][-1] < series["train/epoch_loss"]["values"][0]
P
    check tensorflow_keeps has "$(api GET /api/v1/jobs/tensorflow/artifacts)" model.keras
else
    echo "skip tensorflow: $1 has no keras with tensorboard"
fi

if python3 -c 'import torch' 2>/dev/null; then
    check pytorch_runs run_example pytorch
    check pytorch_workers_agree same "$(api GET '/api/v1/jobs/pytorch/logs?task=worker/0&stream=stdout&offset=0' | grep -o 'y = .*')" \
        "$(api GET '/api/v1/jobs/pytorch/logs?task=worker/1&stream=stdout&offset=0' | grep -o 'y = .*')"
    check pytorch_keeps has "$(api GET /api/v1/jobs/pytorch/artifacts)" model.pt
    if python3 -c 'from torch.utils.tensorboard import SummaryWriter' 2>/dev/null; then
        check pytorch_curves has "$(api GET /api/v1/jobs/pytorch/metrics)" '"name":"loss"'
    else
        echo "skip pytorch_curves: $1 has no tensorboard"
    fi
else
    echo "skip pytorch: $1 has no torch"
fi
