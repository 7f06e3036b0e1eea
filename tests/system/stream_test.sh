#!/bin/bash
# stream_test.sh - clients that stay connected: a revoked token ends them, and one that does not read is shown out.
# Faults of docs/reliability.md: F21.
. "$(dirname "$0")/lib.sh"

serve yard --cpus 2
digits "$dir"
cat >"$work/long.json" <<'END'
{"name": "long", "model": {"layers": [{"layer": "Flatten"}, {"layer": "Dense", "units": 10}]},
 "data": {"dataset": "digits"}, "train": {"steps": 100000000}}
END
job=$(field "$(api POST /api/v1/jobs "@$work/long.json")" number)
check stream_job_runs wait_for 30 is_state "$job" running
python3 "$here/stream.py" "${url#http://}" "$token" "$job" "$pid" >"$work/clients" || failed=1
cat "$work/clients"
grep -q '^FAIL' "$work/clients" && failed=1

# A session that signs out ends what its page has open.
jar=$work/jar
curl -sS -c "$jar" -o /dev/null "$link"
csrf=$(field "$(curl -sS -b "$jar" "$url/api/v1/session")" csrf)
curl -sS -N -b "$jar" "$url/api/v1/jobs/$job/events" >"$work/events" &
reader=$!
pids+=("$reader")
check stream_session_reads wait_for 5 test -s "$work/events"
curl -sS -b "$jar" -X DELETE -H "X-CSRF: $csrf" "$url/api/v1/session"
ended() { ! kill -0 "$reader" 2>/dev/null; }
check stream_signed_out_ends wait_for 2 ended
api POST "/api/v1/jobs/$job:kill" >/dev/null
wait_for 20 is_final "$job"
stop TERM
