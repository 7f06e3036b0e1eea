#!/bin/bash
# download_test.sh - artifacts and checkpoints over REST: whole, in parts, resumed, and only when they are others.
. "$(dirname "$0")/lib.sh"
serve yard --cpus 2
digits "$dir"
get() { curl -sS -m 20 -H "Authorization: Bearer $token" -D "$work/head" -o "$work/part" -w '%{http_code}' "$@"; }
header() { tr -d '\r' <"$work/head" | sed -n "s/^$1: //Ip"; }

# --- an artifact ---
"$trainyard" run --name keeps --dir "$dir" -- sh -c 'seq 200000 >$TRAINYARD_OUT/artifacts/numbers; : >$TRAINYARD_OUT/artifacts/empty' >/dev/null
seq 200000 >"$work/numbers"
at=$url/api/v1/jobs/keeps/artifacts/content
check whole same "$(get "$at?path=numbers")" 200
check whole_bytes cmp "$work/part" "$work/numbers"
check tells_ranges same "$(header Accept-Ranges)" bytes
tag=$(header ETag)
check part same "$(get "$at?path=numbers" -H 'Range: bytes=1000-1999')" 206
check part_bytes cmp "$work/part" <(tail -c +1001 "$work/numbers" | head -c 1000)
check part_is_told same "$(header Content-Range)" "bytes 1000-1999/$(stat -c %s "$work/numbers")"
check part_size same "$(header Content-Length)" 1000
check end same "$(get "$at?path=numbers" -H 'Range: bytes=-7'; cat "$work/part")" "206200000"
check head_is_as_get same "$(get -I "$at?path=numbers" -H 'Range: bytes=0-9') $(header Content-Length)" "206 10"
head -c 500000 "$work/numbers" >"$work/half"
curl -sS -m 20 -C - -H "Authorization: Bearer $token" -o "$work/half" "$at?path=numbers"
check resumed cmp "$work/half" "$work/numbers"
check behind same "$(get "$at?path=numbers" -H 'Range: bytes=99999999-')" 416
check behind_says same "$(header Content-Range)" "bytes */$(stat -c %s "$work/numbers")"
check behind_is_problem has "$(cat "$work/part")" "lies outside of the"
check of_nothing same "$(get "$at?path=empty" -H 'Range: bytes=0-')" 416
check several_are_whole same "$(get "$at?path=numbers" -H 'Range: bytes=0-1,5-6')" 200
check unchanged same "$(get "$at?path=numbers" -H "If-None-Match: $tag")" 304
check changed same "$(get "$at?path=numbers" -H 'If-None-Match: "x"')" 200
check if_range same "$(get "$at?path=numbers" -H "If-Range: $tag" -H 'Range: bytes=0-9')" 206
check if_range_of_another same "$(get "$at?path=numbers" -H 'If-Range: "x"' -H 'Range: bytes=0-9')" 200

# --- checkpoints ---
api POST /api/v1/jobs '{"name": "small", "seed": 7, "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]}, "data": {"dataset": "digits"},
    "train": {"optimizer": "SGD", "loss": "sparse_categorical_crossentropy", "steps": 40}, "checkpoint": {"every_steps": 20}}' >/dev/null
number=$(field "$(cat "$work/body")" number)
check succeeds wait_for 60 is_state "$number" succeeded
at=/api/v1/jobs/$number/checkpoints
check listed same "$(api GET "$at" | grep -o '"step":[0-9]*' | xargs)" "step:20 step:40"
shown=$(api GET "$at/40")
check files same "$(python3 -c 'import json, sys; print(*sorted(f["path"] for f in json.loads(sys.argv[1])["files"]))' "$shown")" \
    "model.ckpt-40.data-00000-of-00001 model.ckpt-40.index model.ckpt-40.manifest"
for kind in index data-00000-of-00001 manifest; do
    file=model.ckpt-40.$kind
    check "checkpoint_$kind" same "$(get "$url$at/40/content?path=$file")" 200
    check "checkpoint_${kind}_bytes" cmp "$work/part" "$dir/jobs/$number/checkpoints/$file"
    cp "$work/part" "$work/$file"
done
check checkpoint_is_whole has "$("$trainyard" checkpoint show "$work/model.ckpt-40")" kernel
check checkpoint_part same "$(get "$url$at/40/content?path=$file" -H 'Range: bytes=0-0'; cat "$work/part")" "206{"
for path in checkpoint epoch best ../../../control.db model.ckpt-20.index model.ckpt-40./../lock /etc/passwd; do
    check "not_$path" same "$(get "$url$at/40/content?path=$path")" 404
done
for step in 41 -1 40x 99999999999999999999; do
    check "no_step_$step" same "$(api GET "$at/$step" >/dev/null; status)" 404
done
check path_wanted same "$(api GET "$at/40/content" >/dev/null; status)" 400
