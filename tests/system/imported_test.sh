#!/bin/bash
# imported_test.sh - a graph that TensorFlow wrote as the model of a spec: trained, resumed to the same bits, evaluated, asked,
# exported, trained on from, on a server too; and what is refused of it.
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
loss_of() { sed -n 's/.*step 20: validation loss \([0-9.]*\).*/\1/p' <<<"$1"; }
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

# The graph as a file beside the spec; and compressed in it.
mkdir beside && cp "$metas/imported_resource.meta" beside/
sed -E 's|"meta_graph": "[^"]*"|"file": "imported_resource.meta"|' resource.json >beside/named.json
"$trainyard" train beside/named.json --data data --out named --threads 1 >/dev/null 2>&1
check named_as_a_file_trains_to_the_same_bits cmp resource/checkpoints/model.ckpt-60.data-00000-of-00001 named/checkpoints/model.ckpt-60.data-00000-of-00001
sed -E "s|\"meta_graph\": \"[^\"]*\"|\"meta_graph\": \"$(gzip -9c "$metas/imported_resource.meta" | base64 -w0)\"|" resource.json >packed.json
run packed packed --steps 2 >/dev/null
check compressed_trains test -s packed/checkpoints/model.ckpt-2.index
sed -E "s|\"meta_graph\": \"[^\"]*\"|\"meta_graph\": \"$(gzip -9c "$metas/imported_resource.meta" | head -c -20 | base64 -w0)\"|" resource.json >cut.json
check compressed_and_cut_is_refused has "$(run cut cut)" "meta_graph is cut off"
sed -E 's|"file": "[^"]*"|"file": "none.meta"|' beside/named.json >beside/none.json
check absent_file_is_named has "$(run beside/none none)" "beside/none.meta"

"$trainyard" export resource saved --format saved_model >/dev/null
check exported_it_answers_the_same same "$("$trainyard" predict saved one.json --top 1)" "$("$trainyard" predict resource one.json --top 1)"
check exported_it_answers has "$("$trainyard" predict saved one.json)" '[0.'
check references_are_not_exported has "$("$trainyard" export reference out --format saved_model 2>&1)" "a variable by reference"
check nor_as_layers has "$("$trainyard" export resource out.keras 2>&1)" "not layers of Keras"

spec mute resource ', "inputs": {"numbers": "x", "label": "y_"}'
run mute mute --steps 2 >/dev/null
check asks_what_it_predicts has "$("$trainyard" predict mute one.json 2>&1)" "nobody said what it predicts"

# From what another run has learned: the optimizer's state and the step are new.
for kind in resource reference; do
    fresh=$(run $kind $kind-20 --steps 20 | grep 'step 20: validation')
    said=$(run $kind $kind-tuned --steps 20 --init resource)
    check ${kind}_starts_from_a_run has "$said" "started from resource: 2 of 2 variables"
    check ${kind}_goes_on_from_there test "$(loss_of "$said")" '<' "$(loss_of "$fresh")"
done
check wants_all_that_is_learned has "$(run resource other --init "$here/../train/imported_resource.meta")" "imported_resource.meta"

spec blind resource ''
check names_the_placeholders has "$(run blind blind)" 'there are: "x", "y_", "keep"'

# The same on a server: trained by a task, and trained on from there.
serve server
"$trainyard" dataset add d --from data --dir "$dir" >/dev/null
spec there resource "$parts"
one=$(field "$(api POST /api/v1/jobs "$(cat there.json)")" number) || exit 1
wait_for 60 is_final "$one"
check trained_by_a_task same "$(state_of "$one")" succeeded
check to_the_same_bits cmp "$dir/jobs/$one/checkpoints/model.ckpt-60.data-00000-of-00001" resource/checkpoints/model.ckpt-60.data-00000-of-00001
four=$("$trainyard" submit beside/named.json --dir "$dir" --json | sed 's/.*"number": *\([0-9]*\).*/\1/')
wait_for 60 is_final "$four"
check submitted_with_a_file same "$(state_of "$four")" succeeded
check rest_wants_its_bytes has "$(api POST /api/v1/jobs "$(cat beside/named.json)")" "its bytes go into meta_graph"
two=$(field "$(api POST /api/v1/jobs "$(sed "s/\"steps\": 60/\"steps\": 20, \"init\": {\"job\": $one}/" there.json)")" number) || exit 1
wait_for 60 is_final "$two"
check trained_on same "$(state_of "$two")" succeeded
run there tuned-there --steps 20 --init "$dir/jobs/$one/checkpoints" >/dev/null
check from_that_job cmp "$dir/jobs/$two/checkpoints/model.ckpt-20.data-00000-of-00001" tuned-there/checkpoints/model.ckpt-20.data-00000-of-00001
three=$(field "$(api POST /api/v1/jobs "$(sed 's/"numbers": "x"/"numbers": "nope"/' there.json)")" number) || exit 1
wait_for 60 is_final "$three"
check another_placeholder_fails same "$(state_of "$three")" failed
check and_is_named has "$(api GET "/api/v1/jobs/$three")" '/model/graph/inputs'
