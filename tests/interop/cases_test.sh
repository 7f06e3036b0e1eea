#!/bin/bash
# cases_test.sh - TensorFlow's recorded answers, with the kernels that users get and one or two threads.
#
# The recordings are not part of a clone: where they are absent this says so.  Cases that need an op
# which is not there yet are counted as skipped by build/tf-cases.  One case of local-errors expects
# the code that a master gives over gRPC for a dead fetch, which in process has another: it is left out there.
#
# recorded.tfrecord is: cases of ops_fuzz.sh that once differed (ops_keep.py); so is errors.tfrecord, of
# which the words of errors are compared too (errors_generate.py).
shared=${TRAINYARD_SHARED:-../shared}/tf-cases
[ -d "$shared" ] || echo "skip cases: no recorded cases beside this clone ($shared)"
program=${TRAINYARD_BUILD:-build}/tf-cases
failed=0
for file in tests/interop/recorded.tfrecord tests/interop/errors.tfrecord "$shared"/*.tfrecord; do
    [ -e "$file" ] || continue
    name=$(basename "$file" .tfrecord)
    hows=("--threads 1" "--threads 2 --no-optimise")
    # Little memory, so that much is computed twice; and the same bits each time.
    [ "$name" = local-training ] && hows+=("--threads 1 --memory 1" "--threads 2 --times 2 --but cnn" "--threads 2 --times 100 --only train/mlp")
    [ "$name" = local-nn ] && hows+=("--threads 1 --memory 1")
    [ "$name" = errors ] && hows=("--texts --threads 1" "--texts --threads 2 --no-optimise" "--texts --master --threads 1")
    # By MasterService; and cut over three tasks.
    case $name in local-*) hows+=("--master --threads 1") ;; esac
    case $name in local-control-flow | local-queues | local-training) hows+=("--tasks 3 --seed 1 --threads 1") ;; esac
    for how in "${hows[@]}"; do
        [ "$name" = local-errors ] && [ "${how#--master}" = "$how" ] && how="$how --but run/dead-fetch"
        output=$($program $how "$file" 2>&1) || failed=1
        line=$(tail -n 1 <<<"$output")
        if grep -q '^[0-9]* passed, 0 failed' <<<"$line"; then
            echo "ok $name ($how): $line"
        else
            echo "FAIL $name ($how): $line"
            grep '^FAIL' <<<"$output" | head -20 | sed 's/^/  /'
        fi
    done
done
keras=${TRAINYARD_SHARED:-../shared}/tf-files/keras
for file in "$keras"/*.jsonl "$keras"/models/*; do
    [ -e "$file" ] || continue
    output=$("${TRAINYARD_BUILD:-build}"/keras-vectors "$file" 2>&1) || failed=1
    line=$(tail -n 1 <<<"$output")
    if grep -q '^[0-9]* passed, 0 failed' <<<"$line"; then
        echo "ok keras $(basename "$file" .jsonl): $line"
    else
        echo "FAIL keras $(basename "$file" .jsonl): $line"
        grep '^FAIL' <<<"$output" | head -20 | sed 's/^/  /'
    fi
done
for folder in "${keras%/keras}"/savedmodel/* "${keras%/keras}"/graphs/*; do
    [ -e "$folder" ] || continue
    output=$("${TRAINYARD_BUILD:-build}"/saved-models "$folder" 2>&1) || failed=1
    line=$(tail -n 1 <<<"$output")
    if grep -q '^[0-9]* passed, 0 failed' <<<"$line"; then
        echo "ok model $(basename "$folder"): $line"
    else
        echo "FAIL model $(basename "$folder"): $line"
        grep '^FAIL' <<<"$output" | head -20 | sed 's/^/  /'
    fi
done
# What TensorFlow's clients and servers said to each other, said to our masters and workers.
sessions=${TRAINYARD_SHARED:-../shared}/tf-sessions
[ -d "$sessions" ] || echo "skip sessions: no recorded sessions beside this clone ($sessions)"
for file in "$sessions"/*.client.tfrecord "$sessions"/*.workers.tfrecord; do
    [ -e "$file" ] || continue
    # Its two clients race: a gradient that comes later than it did then is stale, and a step waits for ever.
    tries=1
    [ "$(basename "$file")" = sync_replicas.client.tfrecord ] && tries=3
    for ((try = 1; try <= tries; try++)); do
        output=$("${TRAINYARD_BUILD:-build}"/tf-sessions "$file" 2>&1) && break
    done
    line=$(tail -n 1 <<<"$output")
    [ $try -le $tries ] || failed=1
    if grep -q '^[0-9]* passed, 0 failed' <<<"$line"; then
        echo "ok session $(basename "$file" .tfrecord): $line"
    else
        echo "FAIL session $(basename "$file" .tfrecord): $line"
        grep -a -A3 '^FAIL' <<<"$output" | head -20 | sed 's/^/  /'
    fi
done
exit $failed
