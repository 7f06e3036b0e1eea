#!/bin/bash
# predict_test.sh - what is done with a trained model: evaluate, predict, export, and predict of what was exported.
set -u
build=${TRAINYARD_BUILD:-build}
task=$(realpath "$build/trainyard-task")
trainyard=$(realpath "$build/trainyard")
shared=$(realpath -m "${TRAINYARD_SHARED:-../shared}")/tf-files
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() { # check NAME CONDITION...
    local name=$1; shift
    if "$@"; then echo "ok $name"; else echo "FAIL $name: $*"; tail -n 20 out err; failed=1; fi
}
run() { "$task" "$@" >out 2>err; code=$?; }
code_is() { [ "$code" = "$1" ] || { echo "  exit code $code, wanted $1"; false; }; }
says() { grep -q -- "$1" out || { echo "  nothing like '$1' in the output"; false; }; }
complains() { grep -qF -- "$1" err || { echo "  nothing like '$1' on stderr"; false; }; }
python() { python3 -c "import json, struct, sys; $1" "${@:2}"; }

# refused NAME TEXT MODE ARGUMENT... : the user's error, told so
refused() {
    local name=$1 text=$2; shift 2
    run "$@"
    check "$name" complains "$text"
    check "${name}_is_the_users" code_is 2
}

"$trainyard" dataset make digits digits --train 600 --test 200 >out 2>err </dev/null
cat >spec.json <<'END'
{"name": "small", "seed": 3, "model": {"layers": [{"layer": "Conv2D", "filters": 4, "kernel_size": 3, "activation": "relu"},
   {"layer": "BatchNormalization"}, {"layer": "Flatten"}, {"layer": "Dropout", "rate": 0.2}, {"layer": "Dense", "units": 10, "activation": "softmax"}]},
 "data": {"dataset": "digits", "batch_size": 50, "validation": 100}, "train": {"steps": 30, "metrics": ["accuracy"]}}
END
run train spec.json --data digits --out run --json </dev/null
check trains code_is 0
tail -n 1 out >end.json

# --- evaluate ---
run evaluate run --data digits --json </dev/null
check evaluates_as_training_did python '
end, now = json.load(open("end.json"))["metrics"], json.load(open("out"))
assert now["part"] == "validation" and now["examples"] == 100 and now["step"] == 30, now
assert (end["val_loss"], end["val_accuracy"]) == (now["loss"], now["accuracy"]), (end, now)'
run evaluate run/checkpoints/model.ckpt-30 --part test </dev/null
check finds_the_dataset_by_its_name complains 'there is no folder datasets/digits: say --data FOLDER'
mkdir datasets && ln -s ../digits datasets/digits
run evaluate run/checkpoints/model.ckpt-30.index --part test </dev/null
check evaluates_a_part_by_its_name says 'small after step 30, 200 examples of the test part'
refused evaluate_of_nothing 'there is no checkpoint nowhere' evaluate nowhere
refused evaluate_of_no_part '--part is "tests", allowed: train, validation, test' evaluate run --part tests
refused evaluate_without_model 'which model?' evaluate
refused evaluate_with_a_typo 'unknown argument "--dat"; did you mean --data?' evaluate run --dat digits
mkdir other && head -c 3073000 /dev/zero >other/data_batch_1.bin && cp other/data_batch_1.bin other/test_batch.bin
refused evaluate_on_other_data 'the model was trained on "images" float [28,28,1], the data has "images" float [32,32,3]' evaluate run --data other

# --- predict ---
python '
import random; random.seed(1)
rows = [[random.randrange(256) for _ in range(784)] for _ in range(300)]
def npy(name, kind, values, shape, code):
    head = str({"descr": kind, "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<%d%s" % (len(values), code), *values))
flat = [x for row in rows for x in row]
npy("pixels.npy", "|u1", flat, (300, 28, 28, 1), "B")
npy("floats.npy", "<f4", [x / 255 for x in flat], (300, 28, 28, 1), "f")
npy("one.npy", "<f8", [x / 255 for x in rows[0]], (28, 28, 1), "d")
image = lambda row: [[[row[28 * y + x] / 255] for x in range(28)] for y in range(28)]
images = [image(row) for row in rows]
json.dump({"instances": images[:3]}, open("instances.json", "w"))
json.dump({"instances": [{"images": i} for i in images[:3]]}, open("named.json", "w"))
json.dump({"inputs": {"images": images[:3]}}, open("inputs.json", "w"))
json.dump(images[:3], open("list.json", "w"), indent=1)
open("lines.jsonl", "w").write("\n".join(json.dumps(i) for i in images[:3]) + "\n\n")
open("named.jsonl", "w").write("\n".join(json.dumps({"images": i}) for i in images[:3]))
open("cut.npy", "wb").write(open("floats.npy", "rb").read(500000))
open("one.pgm", "wb").write(b"P5 28 28 255\n" + bytes(rows[0]))'
run predict run floats.npy </dev/null
check predicts_every_example [ "$(wc -l <out)" = 300 ]
cp out floats.out
head -n 3 out >three
run predict run pixels.npy </dev/null
check pixels_are_scaled_as_in_training python '
a, b = ([json.loads(l) for l in open(name)] for name in ("out", "floats.out"))
assert max(abs(x - y) for p, q in zip(a, b) for x, y in zip(p, q)) < 1e-6'
check predictions_are_probabilities python '
for l in open("out"): assert abs(sum(json.loads(l)) - 1) < 1e-5'
for file in list.json lines.jsonl named.jsonl; do
    run predict run "$file" </dev/null
    check "predict_of_$file" cmp -s out three
    run predict run <"$file"
    check "predict_of_${file}_on_stdin" cmp -s out three
done
for file in instances.json named.json; do
    run predict run - <"$file"
    check "predict_of_$file" python 'assert json.load(open("out"))["predictions"] == [json.loads(l) for l in open("three")]'
done
run predict run inputs.json </dev/null
check predict_of_columns python 'assert json.load(open("out"))["outputs"] == [json.loads(l) for l in open("three")]'
run predict run one.npy </dev/null
check one_example_is_a_batch cmp -s out <(head -n 1 three)
for batch in 1 7 0; do
    run predict run floats.npy --batch $batch --threads 1 </dev/null
    check "batches_of_$batch" python '
a, b = ([json.loads(l) for l in open(name)] for name in ("out", "floats.out"))
assert len(a) == 300 and max(abs(x - y) for p, q in zip(a, b) for x, y in zip(p, q)) < 1e-6'
done
run predict run floats.npy --output p.npy </dev/null
check output_as_npy python '
bytes = open("p.npy", "rb").read()
assert b"(300, 10)" in bytes[:128] and b"<f4" in bytes[:128] and len(bytes) == 128 + 12000
row = struct.unpack("<10f", bytes[128:168])
assert all(abs(a - b) < 1e-7 for a, b in zip(row, json.loads(open("three").readline())))'
run predict run floats.npy --output p.json </dev/null
check output_as_json python 'assert len(json.load(open("p.json"))["predictions"]) == 300'
run predict run --inputs </dev/null
check tells_its_inputs says 'images float \[?,28,28,1\]'

wrong() { # wrong NAME TEXT JSON
    printf '%s' "$3" >wrong.json
    refused "$1" "$2" predict run wrong.json
}
wrong wrong_shape 'input "images" takes [?,28,28,1], found [1,2]' '[[1, 2]]'
wrong ragged 'wrong.json: input "images": [1] found a list of 1, wanted a list of 2 as the first one' '[[1, 2], [3]]'
wrong a_word 'wrong.json: input "images": [0][1] found "x", wanted a number' '[[1, "x"]]'
wrong unknown_input 'there is no input "image", there are: images float [?,28,28,1]' '{"image": [1]}'
wrong no_examples 'there are no examples' '{"instances": []}'
wrong cut_json "']' expected near end of file" '[[1, 2'
wrong no_json 'wrong.json is neither JSON nor NPY, NPZ or an image' 'hello'
wrong nothing 'wrong.json is empty' ''
refused cut_npy 'cut.npy ends in example' predict run cut.npy
refused no_image 'one.pgm is neither JSON nor NPY, NPZ or an image' predict run one.pgm
refused absent_input 'cannot read nowhere' predict run nowhere
refused absent_model 'is no run' predict nowhere
refused no_such_ending 'its ending says no form; known: .json, .jsonl, .npy, .npz' predict run one.npy --output p.txt
refused no_signatures 'run is no SavedModel' predict run --signature x
check nothing_is_left_of_a_failed_output [ ! -e p.txt ]

# --- export ---
run export run saved --format saved_model </dev/null
check exports says 'saved: saved_model of step 30 of small'
run predict saved floats.npy </dev/null
check exported_predicts_the_same cmp -s out floats.out
run predict saved --inputs </dev/null
check exported_tells_its_signature says 'SavedModel, tags serve, signature serving_default'
refused export_again 'saved is there already' export run saved --format saved_model
run export run saved --format saved_model --force </dev/null
check export_by_force code_is 0
refused export_to_nowhere 'none/saved' export run none/saved --format saved_model
refused export_of_no_format '--format is "savedmodel"; did you mean saved_model?' export run x --format savedmodel
refused export_by_ending 'the ending of "x" does not tell the format' export run x
for graph in graph.meta graph.pb graph.pbtxt; do
    run export run $graph </dev/null
    check "exports_$graph" says 'feed "images:0"; fetch "predictions:0"'
    run predict $graph floats.npy </dev/null
    check "${graph}_predicts_the_same" cmp -s out floats.out
done
run predict graph.pb --inputs </dev/null
check graph_tells_its_signature says 'a graph, signature graph'
refused meta_graph_by_another_name 'the name of a MetaGraphDef ends in .meta' export run graph --format meta_graph
refused tags_of_a_graph 'graph.pb is one graph: it has no tags' predict graph.pb --tags serve
head -c 1000 graph.pb >cut.pb
refused cut_graph 'cut.pb' predict cut.pb floats.npy
rm graph.index
refused graph_without_variables 'Could not find variable' predict graph.meta floats.npy
refused evaluate_of_exported 'is a SavedModel, which does not tell its loss' evaluate saved
refused signature_of_that_name 'there is no signature "x", there are: serving_default' predict saved --signature x floats.npy
rm saved/variables/variables.index
refused without_variables 'there is no saved/variables/variables.index' predict saved floats.npy

run predict run one.npy --top 2 </dev/null
check top_two_classes python '
best = json.load(open("out")); scores = json.loads(open("three").readline())
assert [b[0] for b in best] == sorted(range(10), key=lambda i: -scores[i])[:2], best'
refused top_as_npy '--top names classes, which p.npy cannot hold' predict run one.npy --top 2 --output p.npy

# --- words ---
mkdir people && python '
open("people/train.csv", "w").write("city,age,buys\n" + "".join("%s,%d,%s\n" % (c, a, "yes" if c == "rome" else "no") for a in range(40) for c in ("rome", "oslo", "lima")))'
cat >people.json <<'END'
{"name": "people", "model": {"layers": [{"layer": "InputLayer", "name": "city"}, {"layer": "Embedding", "name": "e", "input_dim": 5, "output_dim": 4, "inputs": "city"},
   {"layer": "Flatten", "name": "f", "inputs": "e"}, {"layer": "InputLayer", "name": "numbers"}, {"layer": "Concatenate", "name": "all", "inputs": ["f", "numbers"]},
   {"layer": "Dense", "units": 2, "activation": "softmax"}]},
 "data": {"dataset": "people", "batch_size": 20, "validation": 20, "target": "buys"},
 "train": {"optimizer": {"name": "Adam", "learning_rate": 0.05}, "steps": 100}}
END
run train people.json --data people --out people-run </dev/null
run predict people-run --top 1 <<<'[{"city": "rome", "numbers": [0]}, {"city": "oslo", "numbers": [0]}, {"city": "paris", "numbers": [0]}]'
check words_in_and_out python '
rows = [json.loads(l) for l in open("out")]
assert len(rows) == 3 and rows[0][0][0] == "yes" and rows[1][0][0] == "no", rows'
refused a_word_is_no_number 'wanted a number' predict people-run - <<<'[{"city": "rome", "numbers": ["x"]}]'

# --- a model of text ---
mkdir text && python 'open("text/input.txt", "w").write("hello world. " * 200)'
cat >text.json <<'END'
{"name": "text", "seed": 1, "model": {"layers": [{"layer": "Embedding", "input_dim": 12, "output_dim": 8}, {"layer": "LSTM", "units": 32, "return_sequences": true},
   {"layer": "Dense", "units": 12}]},
 "data": {"dataset": "text", "tokenizer": "characters", "sequence_length": 16, "batch_size": 16},
 "train": {"loss": {"name": "SparseCategoricalCrossentropy", "from_logits": true}, "optimizer": {"name": "Adam", "learning_rate": 0.02}, "steps": 120}}
END
run train text.json --data text --out told </dev/null
check trains_on_a_text code_is 0
run predict told --text 'hello w' --length 17 --temperature 0 </dev/null
check goes_on_with_a_text says '^hello world. hello world'
run predict told --text 'hello w' --length 40 --temperature 3 --seed 5 </dev/null
cp out drawn
run predict told --text 'hello w' --length 40 --temperature 3 --seed 5 </dev/null
check same_seed_same_text cmp -s out drawn
run predict told --text 'hello w' --length 40 --temperature 3 --seed 6 </dev/null
check other_seed_other_text [ "$(cat out)" != "$(cat drawn)" ]
refused no_text_of_a_model_of_images 'small is no model that goes on with a text' predict run --text hello
refused no_cold '--temperature is "-1", allowed: a number from 0 on' predict told --text hello --temperature -1

# --- damage ---
cp -r run damaged
data=damaged/checkpoints/model.ckpt-30.data-00000-of-00001
printf '\xff' | dd of="$data" bs=1 seek=100 conv=notrunc status=none
refused damaged_checkpoint 'is damaged' predict damaged one.npy
rm damaged/checkpoints/*.manifest
refused without_manifest 'which tells its spec' predict damaged/checkpoints/model.ckpt-30 one.npy

if [ -d "$shared" ]; then
    run predict "$shared/savedmodel/v2-module" --signature branch <<<'{"inputs": {"x": [[1, 2, 3]], "double": true}}'
    check recorded_model_with_branches python 'assert json.load(open("out")) == {"outputs": [15]}'
    run predict "$shared/savedmodel/v2-table-asset" <<<'["a", "bcd"]'
    check recorded_model_with_a_table python '
rows = [json.loads(l) for l in open("out")]
assert [r["length"] for r in rows] == [1, 3], rows'
    refused recorded_model_by_other_tags 'no meta graph has the tags "none", there are: "serve"' predict "$shared/savedmodel/v2-module" --tags none
    for name in mlp cnn lstm resnet; do
        model=$shared/keras/models/$name
        python '
import base64
expected = json.load(open(sys.argv[1]))
def nested(array, shape):
    return [nested(array[i * len(array) // shape[0]:(i + 1) * len(array) // shape[0]], shape[1:]) for i in range(shape[0])] if shape else array[0]
def read(j):
    j = j[0] if isinstance(j, list) else j
    raw = base64.b64decode(j["base64"])
    return nested(struct.unpack("<%d%s" % (len(raw) // 4, "f" if j["dtype"] == "float32" else "i"), raw), j["shape"])
json.dump(read(expected["input"]), open("k.json", "w")); json.dump(read(expected["output"]), open("k.out", "w"))' "$model/expected.json"
        run predict "$model/model.keras" k.json </dev/null
        check "keras_$name" python '
def flat(x): return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]
got, want = flat([json.loads(l) for l in open("out")]), flat(json.load(open("k.out")))
assert len(got) == len(want) and all(abs(a - b) < 1e-5 + 1e-4 * abs(b) for a, b in zip(got, want)), (got[:3], want[:3])'
    done
    run export "$shared/keras/models/cnn/model.keras" converted --format saved_model </dev/null
    check keras_becomes_a_saved_model says 'signature "serving_default"'
    refused evaluate_of_keras 'does not tell how it was trained' evaluate "$shared/keras/models/cnn/model.keras"
else
    echo "skip recorded: no recorded files beside this clone ($shared)"
fi
exit $failed
