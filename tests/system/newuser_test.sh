#!/bin/bash
# newuser_test.sh - what a person meets on the first day: the demo, mistakes, Ctrl-C, a server that comes and goes, a
# full disk.  Each mistake is answered by what is wrong, and what to do.
. "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# says NAME CODE TEXT COMMAND... : ends with the code, and the text is in what it says
says() {
    local name=$1 code=$2 text=$3 answer got
    shift 3
    answer=$(timeout 60 "$@" 2>&1 </dev/null)
    got=$?
    check "$name" same "$got" "$code"
    check "${name}_says" has "$answer" "$text"
}

# --- help, and words that are nearly right ---
verbs=$("$trainyard" help | sed -n 's/^  trainyard \([a-z]*\) .*/\1/p')
check verbs_are_listed test "$(wc -w <<<"$verbs")" -ge 15
for verb in $verbs; do
    case $verb in version) text=trainyard ;; help) text="trainyard VERB --help" ;; *) text="usage: trainyard $verb" ;; esac
    says "help_$verb" 0 "$text" "$trainyard" "$verb" --help
done
says nothing 2 "trainyard VERB --help" "$trainyard"
says wrong_verb 2 "did you mean 'submit'?" "$trainyard" sumbit x
says strange_verb 2 "trainyard help" "$trainyard" elephant
says wrong_option 2 "did you mean --state?" "$trainyard" jobs --stat running
says wrong_option_of_train 2 "did you mean --steps?" "$trainyard" train digits-mlp --step 5
says word_missing 2 "usage: trainyard watch JOB" "$trainyard" watch

says port_out_of_range 2 "--port is 80000; it must be from 0" "$trainyard" serve --dir yard --port 80000
says cpus_below_zero 2 "--cpus is -1; it must be from 0" "$trainyard" serve --dir yard --port 0 --cpus -1
says host_by_name 2 "it must be an IPv4 address" "$trainyard" serve --dir yard --port 0 --host localhost
touch file
says folder_is_a_file 2 "file is no folder" "$trainyard" serve --dir file --port 0
says token_of_no_yard 1 "begin with: trainyard serve --dir yrad" "$trainyard" token create --dir yrad
check token_makes_no_yard test ! -e yrad

# --- training here, as the README says ---
"$trainyard" dataset make digits digits --train 2000 --test 500 >/dev/null
says train_without_data 2 "trainyard dataset make digits datasets/digits" "$trainyard" train digits-mlp
says train_unknown_example 2 "digits-cnn, digits-mlp" "$trainyard" train digits-mpl --data digits
says train_example 0 "test accuracy" "$trainyard" train digits-mlp --data digits --steps 50
says train_says_where 0 "in runs/digits-mlp: checkpoints, and events for" "$trainyard" train digits-mlp --data digits --steps 5
says train_says_what_it_replaces 0 "runs/digits-mlp/checkpoints has checkpoints of an earlier run" "$trainyard" train digits-mlp --data digits --steps 5
says train_goes_on 0 "resumed after step 5" "$trainyard" train digits-mlp --data digits --steps 9 --resume
cat >typo.json <<'END'
{"model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "unitz": 10}]}, "data": {"dataset": "digits"}}
END
says train_typo 2 '/model/layers/1/unitz: typo.json: unknown field "unitz"; did you mean "units"?' "$trainyard" train typo.json --data digits
echo '{"example": "digits-mlp",}' >comma.json
says train_no_json 2 "comma.json" "$trainyard" train comma.json --data digits
"$trainyard" train digits-mlp --data digits --steps 100000000 --out interrupted >interrupted.out 2>&1 &
task=$!
pids+=("$task")
wait_for 20 grep -q "step 1/" interrupted.out
kill -INT "$task"
wait "$task"
check train_interrupted same $? 3
check train_says_how_to_go_on grep -q "go on with: trainyard train digits-mlp --data digits --out interrupted --resume" interrupted.out

# What is made takes the place of what was there only when it is whole.
"$trainyard" dataset make digits twice --train 50 --test 20 >/dev/null 2>&1
before=$(sha256sum twice/*)
"$trainyard" dataset make digits twice --train 1000000 --test 20 --seed 1 >/dev/null 2>&1 &
maker=$!
wait_for 20 test -s twice/.making/train-images-idx3-ubyte
kill -9 "$maker"
wait "$maker" 2>/dev/null
check make_leaves_what_was_there same "$(sha256sum twice/*)" "$before"
says make_anew 0 "80 to train" "$trainyard" dataset make digits twice --train 80 --test 20 --seed 1
check make_clears_up same "$(ls -A twice)" "$(printf '%s\n' dataset.json t10k-images-idx3-ubyte t10k-labels-idx1-ubyte train-images-idx3-ubyte train-labels-idx1-ubyte)"

# --- with a server ---
says no_server 3 "trainyard serve --dir" "$trainyard" jobs --dir "$work/yard"
serve yard --cpus 2 --grace-ms 5000
export TRAINYARD_DIR=$dir
says submit_without_data 2 "trainyard dataset" "$trainyard" submit digits-mlp
digits "$dir"
says submit_unknown_example 2 "digits-cnn" "$trainyard" submit digits-mpl
says submit_no_file 2 "nowhere.json" "$trainyard" submit ./nowhere.json
says submit_typo 2 'unknown field "unitz"; did you mean "units"?' "$trainyard" submit typo.json
says submit_typo_pointer 2 "/model/layers/1/unitz" "$trainyard" submit typo.json
says submit_no_json 2 "comma.json" "$trainyard" submit comma.json
mkdir digits-cnn
says submit_example_beside_a_folder 0 "would start now" "$trainyard" submit digits-cnn --plan
rmdir digits-cnn
says submit_plan 0 "would start now" "$trainyard" submit digits-mlp --plan
says submit_example 0 "succeeded" "$trainyard" submit digits-mlp --steps 50 --watch
says submit_without_what_is_made 2 "trainyard dataset add linear --dir $dir" "$trainyard" submit linear
says submit_without_what_is_brought 2 "trainyard dataset add shakespeare --from FOLDER --dir $dir" "$trainyard" submit shakespeare-lstm
says dataset_add_made 0 "2000 to train" "$trainyard" dataset add linear --dir "$dir"
says dataset_add_unknown 2 "with --from FOLDER" "$trainyard" dataset add shakespeare --dir "$dir"
"$trainyard" dataset make linear linear >/dev/null 2>&1
says dataset_add_table 0 "2000 to train" "$trainyard" dataset add linear --from linear --dir "$dir"
says dataset_show_table 0 "target   float" "$trainyard" dataset show linear --dir "$dir"
says submit_table 0 "succeeded" "$trainyard" submit linear --watch
says no_such_job 1 "999" "$trainyard" show 999
says no_such_job_to_watch 1 "999" "$trainyard" watch 999
cp -r digits "$dir/datasets/hurt"
printf 'XXXX' | dd of="$(ls "$dir"/datasets/hurt/train-images*)" conv=notrunc 2>/dev/null
echo '{"example": "digits-mlp", "data": {"dataset": "hurt"}}' >hurt.json
says damaged_dataset 1 "train-images" "$trainyard" submit hurt.json --watch

# Ctrl-C while watching ends the watching, not the job.
job=$(field "$("$trainyard" submit digits-mlp --steps 100000000 --json)" number)
wait_for 30 is_state "$job" running
"$trainyard" watch "$job" >watched 2>&1 &
watcher=$!
wait_for 20 grep -q running watched # it hears Ctrl-C by now
kill -INT "$watcher"
wait "$watcher"
check watch_interrupted_code test $? -lt 4
check job_runs_on is_state "$job" running

# The server is stopped and started again, as for an update: the task knows nothing of it.
task=$(field "$(api GET "/api/v1/jobs/$job/attempts")" items 0 tasks 0 pid)
stop TERM
check task_outlives_server kill -0 "$task"
says server_is_gone 3 "trainyard serve --dir" "$trainyard" jobs
again --cpus 2
check job_still_runs wait_for 10 is_state "$job" running
before=$(field "$(api GET "/api/v1/jobs/$job")" step)
goes_on() { [ "$(field "$(api GET "/api/v1/jobs/$job")" step)" -gt "$before" ]; }
check job_goes_on wait_for 10 goes_on
check same_task same "$(field "$(api GET "/api/v1/jobs/$job/attempts")" items 0 tasks 0 pid)" "$task"
"$trainyard" cancel "$job" >/dev/null
says watch_cancelled 4 "cancelled" "$trainyard" watch "$job"
stop TERM
unset TRAINYARD_DIR

# --- the demo ---
"$trainyard" demo --dir demo --port 0 >demo.out 2>&1 &
demo=$!
pids+=("$demo")
check demo_shows_a_link wait_for 60 grep -q "http://127.0.0.1:[0-9]*/login?code=ty_" demo.out
wait_for 60 grep -q "running" demo.out
server=$(field "$(cat demo/server.json)" pid)
kill -INT "$demo"
wait "$demo"
check demo_interrupted grep -q "the job runs on by itself" demo.out
ended() { ! kill -0 "$1" 2>/dev/null; }
check demo_takes_its_server_along wait_for 10 ended "$server"
for shim in demo/agent/attempts/*/shim.json; do
    [ -e "$shim" ] && kill -9 -- "-$(field "$(cat "$shim")" task_pid)" 2>/dev/null
done

# --- a full disk ---
if unshare -m true 2>/dev/null; then
    TRAINYARD_BUILD=$build unshare -m "$here/full_disk.sh" >full.out 2>&1 || failed=1
    cat full.out
else
    echo "skip full_disk: no right to mount"
fi
