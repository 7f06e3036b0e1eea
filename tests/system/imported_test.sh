#!/bin/bash
# imported_test.sh - a graph that TensorFlow wrote as the model of a spec: trained, resumed to the same bits, evaluated, asked,
# exported; and what is refused of it.
. "$(dirname "$0")/lib.sh"
metas=$here/../train
cd "$work" || exit 1
mkdir data
awk 'BEGIN {
    print "a,b,c,d,label"
    for (i = 0; i < 600; i++) {
        x = (i * 37 % 64) / 32 - 1; y = (i * 53 % 64) / 32 - 1; z = (i * 29 % 64) / 32 - 1
        printf "%g,%g,%g,%g,%d\n", x, y, z, (i * 11 % 64) / 32 - 1, (x + y > 0 ? (z > 0 ? 2 : 1) : 0)
    }
}' >data/train.csv

# spec NAME KIND PARTS : NAME.json
spec() {
    cat >"$1.json" <<JSON
{"name": "$1", "seed": 3, "model": {"graph": {"meta_graph": "$(base64 -w0 "$metas/imported_$2.meta")"$3}},
 "data": {"dataset": "d", "batch_size": 20, "target": "label", "validation": 100},
 "train": {"steps": 60, "eval_every": 20}, "checkpoint": {"every_steps": 20}}
JSON
}
run() { "$trainyard" train "$1.json" --data data --out "$2" --threads 1 "${@:3}" 2>&1; }
parts=', "inputs": {"numbers": "x", "label": "y_"}, "output": "probabilities", "metrics": {"accuracy": "accuracy"}'

for kind in resource reference; do
    spec $kind $kind "$parts"
    said=$(run $kind $kind)
    check ${kind}_trains has "$said" "step 60: validation loss 0.12"
    check ${kind}_knows_its_size has "$said" "15 parameters"
    run $kind $kind-again --steps 40 >/dev/null
    run $kind $kind-again --resume >/dev/null
    check ${kind}_resumes_to_the_same_bits cmp $kind/checkpoints/model.ckpt-60.data-00000-of-00001 $kind-again/checkpoints/model.ckpt-60.data-00000-of-00001
    check ${kind}_is_evaluated has "$("$trainyard" evaluate $kind --data data 2>&1)" "accuracy                 0.9"
    echo '[[0.5, 0.5, 0.5, 0]]' >one.json
    answer=$("$trainyard" predict $kind one.json --top 1)
    check ${kind}_answers has "$answer" "[[2, 0.9"
done

"$trainyard" export resource saved --format saved_model >/dev/null
check exported_it_answers_the_same same "$("$trainyard" predict saved one.json --top 1)" "$("$trainyard" predict resource one.json --top 1)"
check exported_it_answers has "$("$trainyard" predict saved one.json)" '[0.'
check references_are_not_exported has "$("$trainyard" export reference out --format saved_model 2>&1)" "a variable by reference"
check nor_as_layers has "$("$trainyard" export resource out.keras 2>&1)" "not layers of Keras"

spec mute resource ', "inputs": {"numbers": "x", "label": "y_"}'
run mute mute --steps 2 >/dev/null
check asks_what_it_predicts has "$("$trainyard" predict mute one.json 2>&1)" "nobody said what it predicts"
check starts_as_it_says has "$(run mute other --init resource)" "a graph starts as its own op sets its variables"
spec blind resource ''
check names_the_placeholders has "$(run blind blind)" 'there are: "x", "y_", "keep"'
