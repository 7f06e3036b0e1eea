#!/bin/bash
# graph_show_test.sh - `trainyard-task graph show` of every form of file that holds a graph.
set -u
build=${TRAINYARD_BUILD:-build}
task=$(realpath "$build/trainyard-task")
shared=$(realpath -m "${TRAINYARD_SHARED:-../shared}")/tf-files
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failed=0

check() { # check NAME CONDITION...
    local name=$1; shift
    if "$@"; then echo "ok $name"; else echo "FAIL $name: $*"; tail -n 20 out err; failed=1; fi
}
show() { "$task" graph show "$@" >out 2>err </dev/null; code=$?; }
code_is() { [ "$code" = "$1" ] || { echo "  exit code $code, wanted $1"; false; }; }
says() { grep -q -- "$1" out || { echo "  nothing like '$1' in the output"; false; }; }
complains() { grep -q -- "$1" err || { echo "  nothing like '$1' on stderr"; false; }; }

cat >chain.pbtxt <<'END'
# What people write by hand.
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: -1 } dim { size: 8 } } } } }
node { name: "e" op: "Exp" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "y" op: "Neg" input: "e" attr { key: "T" value { type: DT_FLOAT } } }
END
show chain.pbtxt --nodes
check text_is_shown code_is 0
check text_is_told_as_such says '^chain.pbtxt: GraphDef, text$'
check text_has_before_and_after says '^2 nodes run, of 3 in the file$'
check text_tells_what_the_pass_did says '+ y (_Elementwise) for e, y'
check text_tells_what_is_left says 'y = _Elementwise(x)'
show chain.pbtxt --without chain
check without_the_pass says '^3 nodes run, of 3 in the file$'
sed 's/op: "Exp"/opp: "Exp"/' chain.pbtxt >typo.pbtxt
show typo.pbtxt
check typo_is_refused code_is 2
check typo_has_its_line complains 'typo.pbtxt (GraphDef): line 4: there is no field "opp" (in tensorflow.NodeDef)'
{ echo 'graph_def {'; cat chain.pbtxt; echo '}'; } >meta.pbtxt
show meta.pbtxt
check meta_graph_as_text says '^meta.pbtxt: MetaGraphDef, text'
mkdir model empty
{ echo 'saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: "serve" tags: "fast" }'; cat meta.pbtxt; echo '}'; } >model/saved_model.pbtxt
show model
check saved_model_as_folder says '^model: SavedModel, text, tags serve,fast$'
show model --tags train
check no_such_tags complains 'no meta graph has the tags "train", there are: "serve,fast"'

wrong() { # wrong NAME PATTERN FILE
    show "$3"
    check "$1" complains "$2"
    check "$1_is_refused" code_is 2
}
printf '\x89HDF\r\n\x1a\n' >weights.h5
wrong hdf5 'weights.h5 is an HDF5 file' weights.h5
printf 'PK\x03\x04....' >model.keras
wrong zip 'model.keras is a zip archive' model.keras
echo '{"class_name": "Sequential"}' >model.json
wrong json 'model.json is JSON; what can be read: GraphDef, MetaGraphDef and SavedModel, binary or text' model.json
head -c 5000 /dev/zero >zeros
wrong zeros 'zeros is none of them' zeros
: >nothing
wrong nothing 'nothing is empty' nothing
wrong folder 'empty is a folder without saved_model.pb' empty
wrong absent 'absent' absent

if [ -d "$shared" ]; then
    show "$shared/graphs/cnn/model.meta"
    check recorded_meta_graph says 'MetaGraphDef, binary, of TensorFlow'
    show "$shared/graphs/cnn/graph.pbtxt" --json
    check recorded_text python3 -c 'import json; assert json.load(open("out"))["nodes"] == 122'
    for name in v1-simple-save v1-assets-main-op v2-keras-mlp v2-module v2-table-asset; do
        show "$shared/savedmodel/$name"
        check "recorded_$name" says 'SavedModel, binary, of TensorFlow .*, tags serve'
    done
    for name in v1-two-graphs v1-pbtxt; do
        wrong "recorded_$name" 'it has 2 meta graphs: choose one by its tags' "$shared/savedmodel/$name"
        show "$shared/savedmodel/$name" --tags serve,gpu
        check "recorded_${name}_by_tags" says 'SavedModel, .*, tags serve,gpu'
    done
else
    echo "skip recorded: no recorded files beside this clone ($shared)"
fi
exit $failed
