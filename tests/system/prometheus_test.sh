#!/bin/bash
# prometheus_test.sh - GET /metrics: its form, line by line, and whether its numbers are true.
. "$(dirname "$0")/lib.sh"
serve yard --cpus 2 --backoff-ms 100
wait_for 10 has "$(api GET /api/v1/nodes)" joined
"$trainyard" run --dir "$dir" --workdir / -- true >/dev/null
"$trainyard" run --dir "$dir" --workdir / --detach -- sleep 60 >/dev/null
wait_for 10 is_state 2 running
api POST /api/v1/jobs '{"project": "big", "command": ["true"], "tasks": {"worker": {"cpus": 2}}}' >/dev/null
api GET /metrics "" -D "$work/head" >"$work/metrics"
check answers same "$(status)" 200
check type has "$(cat "$work/head")" "text/plain; version=0.0.4"
check form same "$(python3 - "$work/metrics" <<'P'
import re, sys
family, seen, samples = None, set(), set()
for line in open(sys.argv[1]):
    line = line.rstrip("\n")
    head = re.fullmatch(r"# (HELP|TYPE) (trainyard_[a-z_]+) (.+)", line)
    if head:
        kind, name, rest = head.groups()
        if kind == "HELP":
            assert name not in seen, f"{name} comes twice"
            seen.add(name); family = name
        else: assert name == family and rest in ("gauge", "counter"), line
        continue
    sample = re.fullmatch(r'(trainyard_[a-z_]+)(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? (-?[0-9.e+-]+)', line)
    assert sample and sample[1] == family, line
    key = (sample[1], sample[2])
    assert key not in samples, line
    samples.add(key); float(sample[4])
print("good" if len(seen) > 12 else seen)
P
)" good
# The board for Grafana: every metric and label that it names is there, and its panels do not lie on each other.
check board same "$(python3 - "$work/metrics" "$here/../../deploy/grafana/trainyard.json" <<'P'
import json, re, sys
text = open(sys.argv[1]).read()
exported = set(re.findall(r"^# TYPE (\S+)", text, re.M))
labels = set(re.findall(r'[{,]([a-z]+)="', text)) | {"instance", "queue", "state"}
board = json.load(open(sys.argv[2]))
panels = board["panels"]
expressions = [t["expr"] for p in panels for t in p.get("targets", [])] + [v["query"] for v in board["templating"]["list"]]
named = {m for e in expressions for m in re.findall(r"trainyard_[a-z_]+", e)}
assert named <= exported, f"not exported: {named - exported}"
asked = {l for e in expressions for l in re.findall(r'[{,]\s*([a-z]+)(?==)', e)} | {
    l.strip() for e in expressions for by in re.findall(r"by \(([^)]*)\)", e) for l in by.split(",")}
assert asked <= labels, f"no such label: {asked - labels}"
assert len({p["id"] for p in panels}) == len(panels)
cells = set()
for p in panels:
    g = p["gridPos"]
    own = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
    assert not own & cells and max(x for x, _ in own) < 24, p["title"]
    cells |= own
unused = exported - named
print("good" if len(named) > 12 and not unused else f"on no panel: {unused}")
P
)" good
value() { grep -v '^#' "$work/metrics" | grep -F "$1 " | awk '{print $NF}'; }
check succeeded same "$(value 'trainyard_jobs{state="succeeded"}')" 1
check running same "$(value 'trainyard_jobs_active{project="default",queue="default",state="running"}')" 1
check queued same "$(value 'trainyard_jobs_active{project="big",queue="default",state="queued"}')" 1
node=$(field "$(api GET /api/v1/nodes)" items 0 name)
check node_up same "$(value "trainyard_node_up{node=\"$node\"}")" 1
check node_cpus same "$(value "trainyard_node_cpus{node=\"$node\"}")" 2
check node_tasks same "$(value "trainyard_node_tasks{node=\"$node\"}")" 1
check memory_is_sane test "$(value trainyard_resident_memory_bytes)" -gt 1000000
token= api GET /metrics >/dev/null; check not_for_anybody same "$(status)" 401
"$trainyard" kill 2 --dir "$dir" >/dev/null
wait_for 10 is_final 2

# --- the scheduler's passes ---
check passes_counted python3 - "$(api GET /api/v1/scheduler)" <<'P'
import json, sys
told = json.loads(sys.argv[1])
took = [one["seconds"] for one in told["longest"]]
assert told["passes"] >= len(took) > 2 and took == sorted(took, reverse=True), told
assert 0 < sum(took) <= told["seconds"] + 1e-9 < 60, told
assert all(one["decide_seconds"] + one["store_seconds"] <= one["seconds"] for one in told["longest"]), told
assert any(one["decisions"] and one["messages"] and one["nodes"] == 1 for one in told["longest"]), told
P
check passes_on_the_command_line has "$("$trainyard" queue --passes --dir "$dir")" "passes since the server started"

