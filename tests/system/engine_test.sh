#!/bin/bash
# engine_test.sh - an engine that does not behave: programs in Slurm's place that refuse, lie and stammer.
. "$(dirname "$0")/lib.sh"

mkdir "$work/bin" "$work/pilots"
script() { printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"; chmod +x "$work/bin/$1"; }
script squeue 'exit 0'
script scancel 'exit 0'
script sbatch 'printf "no partition \303\050 here \377\n" >&2; exit 1'
cat >"$work/engine.json" <<END
{"engine": "slurm", "bin": "$work/bin", "agent": "$trainyard", "folder": "$work/pilots", "poll_seconds": 1,
 "queues": {"default": {"max": 1, "cpus": 2, "memory_bytes": 1073741824}}}
END
serve yard --no-agent --agents-port "$(free_port)" --engine-config "$work/engine.json"
explains() { has "$(api GET "/api/v1/jobs/$id/explain")" "$1" >/dev/null; }

id=$(field "$(api POST /api/v1/jobs '{"command": ["true"]}')" id)
check refusal_is_told wait_for 10 explains "no partition ?( here ?"
check as_json same "$(field "$(api GET "/api/v1/jobs/$id/explain")" code)" ENGINE

# What squeue says is no list of jobs: a flood, then nothing that comes to an end.
script squeue 'yes'
check flood_is_bounded wait_for 20 explains "writes more than 4194304 bytes"
script squeue 'echo slurm is on fire >&2; exit 1'
check failure_is_told wait_for 10 explains "Slurm cannot be asked"
script squeue 'sleep 100'
sleep 2
begin=$SECONDS
stop TERM
check ends_at_once test $((SECONDS - begin)) -le 4
