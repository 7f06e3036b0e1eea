#!/usr/bin/env python3
"""executor.py BUILD [PEERS] - what the executor costs, TensorFlow's figures beside ours.

Ours come from BUILD/bench/executor.  With PEERS, a folder with a virtual environment that has TensorFlow, and
$TRAINYARD_SHARED/bench/tf_micro.py, both are run one after the other and their ratio is printed.
BUILD/bench/executor.json keeps every figure.
"""
import json
import os
import subprocess
import sys


def lines(command):
    out = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    found = []
    for line in out.stdout.splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found


def find(rows, key, **wanted):
    """The least of the figures that match, in its unit."""
    values = [r[key] for r in rows if key in r and all(r.get(k) == v for k, v in wanted.items())]
    return min(values) if values else None


def table(ours, theirs):
    def step(call):
        return find(ours, "us", what="step", call=call)

    def nodes(shape, count):
        return find(ours, "us_per_node", what="executor", shape=shape, nodes=count)

    def tf_nodes(shape, count):
        return find(theirs, "us_per_node", what="executor", shape=shape, nodes=count)

    def tf_step(call):
        return find(theirs, "us", what="null step", where="local", call=call)

    # name, ours, TensorFlow's, goal, whether less is better
    return [
        ("empty step, us", step("no_op"), tf_step("callable(no_op)"), 2, True),
        ("one feed, one fetch, us", step("add, 1 feed, 1 fetch"), tf_step("callable(add) 1 feed 1 fetch"), 5, True),
        ("no-op in a chain of 10,000, us", nodes("chain of no_op", 10000), tf_nodes("chain of no_op", 10000), 0.02, True),
        ("no-op among 10,000, us", nodes("independent no_op", 10000), tf_nodes("independent no_op", 10000), 0.02, True),
        ("add in a chain of 10,000, us", nodes("chain of add", 10000), tf_nodes("chain", 10000), 0.06, True),
        ("add among 1,000, us", nodes("independent add", 1000), tf_nodes("independent", 1000), 0.06, True),
        ("100,000 nodes in to first result, s", find(ours, "first_result_s", what="graph of 100k nodes"),
         find(theirs, "first_run_s", what="graph of 100k nodes"), 1, True),
        ("1,000,000 nodes loaded, s", find(ours, "import_s", what="load of 1M nodes"), None, 2, True),
        ("checkpoint saved in memory, GB/s", find(ours, "save_GBps", on="memory"), find(theirs, "save_GBps", on="memory"), 1.5, False),
        ("checkpoint restored, GB/s", find(ours, "restore_GBps", on="memory"), find(theirs, "restore_GBps", on="memory"), 3, False),
    ]


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    peers = sys.argv[2] if len(sys.argv) > 2 else None
    micro = os.path.join(os.environ.get("TRAINYARD_SHARED", "../shared"), "bench", "tf_micro.py")
    ours = lines([os.path.join(build, "bench", "executor")])
    theirs = []
    if peers and os.path.exists(micro):
        theirs = lines([os.path.join(peers, "bin", "python"), micro, "null", "nodes", "graph100k", "ckpt"])
    elif peers:
        print("TensorFlow is left out: there is no", micro)
    print(f"{'executor':38} {'Trainyard':>10} {'TensorFlow':>10} {'ratio':>7} {'goal':>6}")
    missed = 0
    for name, mine, other, goal, less in table(ours, theirs):
        if mine is None:
            print(f"{name:38} {'-':>10}")
            continue
        # what is passed over altogether may measure as nothing: there is no ratio to it
        ratio = (other / mine if less else mine / other) if other and mine else None
        met = mine <= goal if less else mine >= goal
        missed += not met
        print(f"{name:38} {mine:10.4g} {f'{other:10.4g}' if other else '-':>10} {f'{ratio:6.1f}x' if ratio else '-':>7} {goal:6g}{'' if met else '  missed'}")
    written, read = (find(ours, key, what="plain copy of 800 MB") for key in ("written_GBps", "read_GBps"))
    if written:
        print(f"what limits the checkpoint here: two threads write a new file in memory at {written:.3g} GB/s, and read it into fresh memory at {read:.3g} GB/s")
    with open(os.path.join(build, "bench", "executor.json"), "w") as out:
        json.dump({"ours": ours, "tensorflow": theirs, "load": os.getloadavg()[0]}, out, indent=1)


main()
