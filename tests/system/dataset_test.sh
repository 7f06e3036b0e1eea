#!/bin/bash
# dataset_test.sh - datasets that come over the API: pieces, resuming, what is refused, who may, training on one.
. "$(dirname "$0")/lib.sh"
serve yard --cpus 2 --dataset-bytes 20000000
admin=$token
as() { token=$1; shift; api "$@"; token=$admin; }
for who in ana:member bob:member vic:viewer; do
    printf 'a long password\n' | "$trainyard" user add "${who%:*}" --role "${who#*:}" --password --dir "$dir"
done
token_of() { curl -sS -m 20 -H 'Content-Type: application/json' --data-binary "{\"user\": \"$1\", \"password\": \"a long password\", \"days\": 1}" "$url/api/v1/session/token" | python3 -c 'import json, sys; print(json.load(sys.stdin).get("token", ""))'; }
ana=$(token_of ana) bob=$(token_of bob) vic=$(token_of vic)
check have_tokens test -n "$ana" -a -n "$bob" -a -n "$vic"
# piece TOKEN DATASET PATH OFFSET FILE
piece() {
    curl -sS -m 20 -X PUT -H "Authorization: Bearer $1" -H 'Content-Type: application/octet-stream' -o "$work/body" -w '%{http_code}' \
        --data-binary "@$5" "$url/api/v1/datasets/$2/files?path=$3&offset=$4" >"$work/status"
    status
}
detail() { field "$(cat "$work/body")" detail; }

# --- nothing yet ---
check none same "$(api GET /api/v1/datasets)" '{"items":[]}'
api GET /api/v1/datasets/flowers >/dev/null; check unknown same "$(status)" 404
api POST /api/v1/datasets/flowers:publish '{}' >/dev/null; check nothing_sent same "$(status)" 404

# --- a table, in pieces ---
python3 - "$work" <<'PY'
import random, sys
random.seed(1)
for part, count in (("train", 600), ("test", 200)):
    with open(f"{sys.argv[1]}/{part}.csv", "w") as out:
        out.write("width,length,label\n")
        for _ in range(count):
            kind = random.randrange(2)
            out.write(f"{random.gauss(kind, 0.2):.3f},{random.gauss(-kind, 0.2):.3f},{'ab'[kind]}\n")
PY
size=$(stat -c %s "$work/train.csv")
head -c 5000 "$work/train.csv" >"$work/first"
tail -c +5001 "$work/train.csv" >"$work/rest"
check first_piece same "$(piece "$ana" flowers train.csv 0 "$work/first")" 200
check answers_size same "$(field "$(cat "$work/body")" size)" 5000
check again_is_late same "$(piece "$ana" flowers train.csv 0 "$work/first")" 409
check says_where has "$(detail)" "train.csv has 5000 bytes so far"
check gap_refused same "$(piece "$ana" flowers train.csv 6000 "$work/rest")" 409
check uploading same "$(field "$(as "$ana" GET /api/v1/datasets/flowers)" state)" uploading
check come_so_far same "$(field "$(as "$ana" GET /api/v1/datasets/flowers)" files 0 size)" 5000
check listed_as_such same "$(field "$(as "$vic" GET /api/v1/datasets)" items 0 state)" uploading
check not_bobs same "$(piece "$bob" flowers other.csv 0 "$work/first")" 403
check says_whose has "$(detail)" "ana is sending"
check viewers_do_not same "$(piece "$vic" weeds train.csv 0 "$work/first")" 403
check half_is_refused same "$(as "$ana" POST /api/v1/datasets/flowers:publish '{"files": {"train.csv": "00"}}' >/dev/null; status)" 400
check tells_the_hash has "$(detail)" "train.csv has come with another SHA-256"
check missing_named has "$(as "$ana" POST /api/v1/datasets/flowers:publish '{"files": {"test.csv": "00"}}')" "test.csv has not come"
stop KILL; again --cpus 2 --dataset-bytes 20000000
check goes_on_after_a_crash same "$(piece "$ana" flowers train.csv 5000 "$work/rest")" 200
check whole same "$(field "$(cat "$work/body")" size)" "$size"
check in_a_folder same "$(piece "$ana" flowers test.csv 0 "$work/test.csv")" 200
hash=$(sha256sum <"$work/train.csv" | cut -d' ' -f1)
as "$ana" POST /api/v1/datasets/flowers:publish "{\"files\": {\"train.csv\": \"$hash\"}}" >"$work/made"
check published same "$(status)" 201
check format same "$(field "$(cat "$work/made")" format)" csv
check counts same "$(field "$(cat "$work/made")" train) $(field "$(cat "$work/made")" test)" "600 200"
check by_whom same "$(field "$(cat "$work/made")" added_by)" ana
check target has "$(cat "$work/made")" '"name":"label","role":"target"'
check again_is_fine same "$(as "$ana" POST /api/v1/datasets/flowers:publish "{\"files\": {\"train.csv\": \"$hash\"}}" >/dev/null; status)" 201
check not_over_it same "$(piece "$ana" flowers train.csv 0 "$work/first")" 409
check ready same "$(field "$(as "$vic" GET /api/v1/datasets/flowers)" state)" ready
curl -sS -m 20 -H "Authorization: Bearer $vic" -o "$work/back" "$url/api/v1/datasets/flowers/files?path=train.csv"
check same_bytes cmp "$work/train.csv" "$work/back"

# --- many first pieces at once ---
senders=()
for i in 1 2 3 4 5 6 7 8; do
    curl -sS -m 20 -X PUT -H "Authorization: Bearer $ana" -H 'Content-Type: application/octet-stream' -o /dev/null -w '%{http_code}\n' \
        --data-binary "@$work/first" "$url/api/v1/datasets/crowd/files?path=part$i.csv&offset=0" >"$work/crowd$i" &
    senders+=($!)
done
wait "${senders[@]}"
check all_come same "$(cat "$work"/crowd? | sort -u)" 200
as "$ana" DELETE /api/v1/datasets/crowd >/dev/null

# --- names and paths that cannot be ---
for path in ../x /etc/passwd a/../b .hidden a/.b dataset.json "$(printf 'n%.0s' {1..300})"; do
    check "path_$(printf %.12s "$path")" same "$(piece "$ana" weeds "$(python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1], safe=""))' "$path")" 0 "$work/first")" 400
done
check bad_name same "$(piece "$ana" .weeds train.csv 0 "$work/first")" 400
check no_path same "$(curl -sS -o /dev/null -w '%{http_code}' -X PUT -H "Authorization: Bearer $ana" -H 'Content-Type: application/octet-stream' --data-binary x "$url/api/v1/datasets/weeds/files")" 400
check nothing_left_over same "$(ls -A "$dir/datasets" | tr '\n' ' ')" "flowers "
check reads_stay_below same "$(as "$ana" GET "/api/v1/datasets/flowers/files?path=..%2F..%2Fcontrol.db" >/dev/null; status)" 404
check reads_no_hidden same "$(as "$ana" GET "/api/v1/datasets/flowers/files?path=.upload.json" >/dev/null; status)" 404

# --- nonsense is told as it was sent, and stays to be mended ---
printf 'not an archive' >"$work/bad"
piece "$ana" junk train.npz 0 "$work/bad" >/dev/null
check below_a_file same "$(piece "$ana" junk train.npz/x/y 0 "$work/bad")" 400
check below_a_file_is_told has "$(detail)" "lies in what is a file"
as "$ana" POST /api/v1/datasets/junk:publish '{}' >/dev/null
check nonsense same "$(status)" 400
check no_folder_told same "$(grep -c "$dir" "$work/body")" 0
check stays same "$(field "$(as "$ana" GET /api/v1/datasets/junk)" state)" uploading
check unknown_field has "$(as "$ana" POST /api/v1/datasets/junk:publish '{"file": {}}')" "unknown field 'file'"
check not_bobs_to_remove same "$(as "$bob" DELETE /api/v1/datasets/junk >/dev/null; status)" 403
check abandoned same "$(as "$ana" DELETE /api/v1/datasets/junk >/dev/null; status)" 204
check gone same "$(as "$ana" GET /api/v1/datasets/junk >/dev/null; status)" 404

# --- the quota ---
head -c 15000000 /dev/zero >"$work/large"
check fits same "$(piece "$ana" large a.bin 0 "$work/large")" 200
check too_much same "$(piece "$ana" large b.bin 0 "$work/large")" 507
check tells_limit has "$(detail)" "allowed: 20000000"
as "$ana" DELETE /api/v1/datasets/large >/dev/null
check room_again same "$(piece "$ana" large a.bin 0 "$work/large")" 200
as "$ana" DELETE /api/v1/datasets/large >/dev/null

# --- by command line, from another machine: only address and token ---
mkdir -p "$work/send/train/cats" "$work/send/train/dogs"
python3 - "$work/send/train" <<'PY'
import struct, sys, zlib
def png(path, value):
    rows = b"".join(b"\0" + bytes([value] * 8) for _ in range(8))
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    open(path, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
                           + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
for n in range(6):
    png(f"{sys.argv[1]}/cats/c {n}.png", 10 * n)
    png(f"{sys.argv[1]}/dogs/d{n}.png", 255 - 10 * n)
PY
by_bob() { TRAINYARD_URL=$url TRAINYARD_TOKEN=$bob "$trainyard" "$@"; }
check sends has "$(by_bob dataset upload pets --from "$work/send" 2>&1)" "dataset pets: images, 12 to train"
check shows_what_is_there has "$(by_bob dataset show pets)" "images: 12 examples to train on"
check shows_it_as_json same "$(by_bob dataset show pets --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["name"], d["train"], bool(d["columns"]))')" "pets 12 True"
check shows_what_is_here_as_json same "$("$trainyard" dataset show "$work/send" --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["format"], d["train"])')" "images 12"
check shows_none has "$(by_bob dataset show nothing 2>&1)" "nothing"
check sends_again_is_fine has "$(by_bob dataset upload pets --from "$work/send" 2>&1)" "already"
check lists has "$(by_bob dataset list)" pets
check lists_as_json python3 -c 'import json, sys; assert any(one["name"] == "pets" for one in json.loads(sys.argv[1])["items"])' "$(by_bob dataset list --json)"
check lists_whose has "$(by_bob dataset list)" bob
check empty_folder has "$(by_bob dataset upload none --from "$work/config" 2>&1)" "no files"
check not_anas same "$(as "$ana" DELETE /api/v1/datasets/pets >/dev/null; status)" 403

# --- a job trains on it, and it cannot be removed meanwhile ---
job=$(field "$(as "$ana" POST /api/v1/jobs '{"name": "petals", "data": {"dataset": "flowers", "batch_size": 20}, "model": {"layers": [
    {"layer": "Dense", "units": 2, "activation": "softmax"}]}, "train": {"optimizer": {"name": "Adam", "learning_rate": 0.05}, "steps": 100000000}}')" id)
check submitted same "$(status)" 201
wait_for 20 is_state "$job" running
check in_use same "$(as "$ana" DELETE /api/v1/datasets/flowers >/dev/null; status)" 409
check says_in_use has "$(detail)" "1 job that have not ended"
as "$ana" POST "/api/v1/jobs/$job:cancel" '{}' >/dev/null
wait_for 30 is_final "$job"
check removed_then same "$(as "$ana" DELETE /api/v1/datasets/flowers >/dev/null; status)" 204
check admin_removes same "$(api DELETE /api/v1/datasets/pets >/dev/null; status)" 204
check none_again same "$(api GET /api/v1/datasets)" '{"items":[]}'
check disk_is_empty same "$(ls -A "$dir/datasets")" ""
check in_the_audit has "$(api GET '/api/v1/audit?limit=50')" "/api/v1/datasets/flowers:publish"
stop TERM
