#!/usr/bin/env python3
"""scaling.py BUILD - how training scales to 64 workers, by all-reduce and by parameter servers: a simulator fed with what is
measured here.

Measured: the step of one worker alone, and the steps of two tasks (a thread each: two workers; a worker and a server) on two
models that do little else than send, one with many bytes and one with few; those give what a message costs and how many bytes
a second travel.  The simulator then runs a step message by message, each task with one core and one link in and out: that of
replica_reduce.c (buckets, rings of pieces, trees; batches from the first worker), or that of replica.c (variables out, gradients
in, a server for every four workers, variables where the fewest bytes are).  It is checked against real runs of two tasks on
models that it has not seen, and prints a line of JSON for each: the step it says, the step that was measured; and for 1 to 64
workers examples a second and the share of one worker's speed that each of them keeps.  ROUNDS=3 STEPS=150 MODES=allreduce,ps
"""
import heapq, json, os, shutil, statistics, subprocess, sys, tempfile

sys.path.pop(0)  # platform.py, beside this, is not Python's
BATCH = 100
ALONE, BUCKET, PIECE_MIN = 256 << 10, 4 << 20, 64 << 10  # as in replica_reduce.c


def dense(*sizes):
    return [{"layer": "Flatten"}] + [{"layer": "Dense", "units": n, "activation": "relu"} for n in sizes] + [{"layer": "Dense", "units": 10}]


# layers, batch, gradients from the first layer on as (numbers, share of the backward pass)
CONVOLUTIONS = [{"layer": "Conv2D", "filters": 32, "kernel_size": 5, "padding": "same", "activation": "relu"},
                {"layer": "MaxPooling2D", "pool_size": 2},
                {"layer": "Conv2D", "filters": 64, "kernel_size": 5, "padding": "same", "activation": "relu"},
                {"layer": "MaxPooling2D", "pool_size": 2}]
MODELS = {
    "few bytes": (dense(8), 4, [(6272, 1), (8, 0), (80, 0), (10, 0)]),
    "many bytes": (dense(1024, 1024), 4, [(802816, 43), (1024, 0), (1048576, 56), (1024, 0), (10240, 1), (10, 0)]),
    "mlp": (dense(512, 512), BATCH, [(401408, 45), (512, 0), (262144, 54), (512, 0), (5120, 1), (10, 0)]),
    "cnn": (CONVOLUTIONS + dense(512), BATCH,
            [(800, 5), (32, 0), (51200, 80), (64, 0), (1605632, 14), (512, 0), (5120, 1), (10, 0)]),
    "mlp, wide": (dense(768, 384), BATCH, [(602112, 50), (768, 0), (294912, 49), (384, 0), (3840, 1), (10, 0)]),
}


class Step:
    """Ops with what they wait for; each holds its resources for a while, and its outcome is there a little later."""

    def __init__(self):
        self.ops = []  # resources, seconds, later, users, waits

    def add(self, resources, seconds, after=(), later=0.0):
        index = len(self.ops)
        self.ops.append([resources, seconds, later, [], len(after)])
        for op in after:
            self.ops[op][3].append(index)
        return index

    def run(self):
        free, end = {}, 0.0
        ready = [(0.0, i) for i, op in enumerate(self.ops) if not op[4]]
        came = [0.0] * len(self.ops)
        heapq.heapify(ready)
        while ready:
            at, i = heapq.heappop(ready)
            resources, seconds, later, users, _ = self.ops[i]
            start = max([at] + [free.get(r, 0.0) for r in resources])
            if start > at:  # who can begin before goes first
                heapq.heappush(ready, (start, i))
                continue
            for r in resources:
                free[r] = start + seconds
            done = start + seconds + later
            end = max(end, done)
            for user in users:
                self.ops[user][4] -= 1
                came[user] = max(came[user], done)
                if not self.ops[user][4]:
                    heapq.heappush(ready, (came[user], user))
        return end


def buckets(gradients):
    """Lists of gradients' indexes, as replica_reduce.c puts them together."""
    out, small, size = [], [], 0
    for i in reversed(range(len(gradients))):
        if gradients[i][0] * 4 >= ALONE:
            out.append([i])
    for i in reversed(range(len(gradients))):
        numbers = gradients[i][0] * 4
        if numbers >= ALONE:
            continue
        if size + numbers > BUCKET:
            out.append(small)
            small, size = [], 0
        small.append(i)
        size += numbers
    return out + [small] if small else out


def ps_seconds(model, workers, compute, message, byte):
    """The same with parameter servers."""
    _, batch, gradients = MODELS[model]
    step, share = Step(), sum(s for _, s in gradients)
    servers = max(1, workers // 4)
    held, place = [0] * servers, []
    for numbers, _ in gradients:
        place.append(held.index(min(held)))
        held[place[-1]] += numbers
    sent = [[] for _ in gradients]

    def send(a, b, size, after):
        return step.add((("out", a), ("in", b)), size * byte, after, message)

    for w in range(workers):
        begin = [send(("w", 0), ("w", w), batch * 785 * 4, [])] if w else []
        came = [send(("s", place[i]), ("w", w), n * 4, []) for i, (n, _) in enumerate(gradients)]
        at = begin
        for i, (_, part) in enumerate(gradients):
            at = [step.add((("core", w),), compute * 0.4 * part / share, at + [came[i]])]
        for i in reversed(range(len(gradients))):
            at = [step.add((("core", w),), compute * 0.5 * gradients[i][1] / share, at)]
            sent[i].append(send(("w", w), ("s", place[i]), gradients[i][0] * 4, at))
    total = sum(n for n, _ in gradients)
    arrived = []
    for i, (numbers, _) in enumerate(gradients):
        core = (("server", place[i]),)
        arrived.append(step.add(core, (workers - 1) * numbers * 4 * byte / 8, sent[i]))
    for i, (numbers, _) in enumerate(gradients):  # updates wait for all gradients
        done = step.add((("server", place[i]),), compute * 0.1 * numbers / total, arrived)
        step.add((), 0.0, [done], message)
    return step.run()


def reduce_seconds(model, workers, compute, message, byte):
    """compute: of one worker alone; message, byte: seconds that one takes on its way."""
    _, batch, gradients = MODELS[model]
    step, ways, made = Step(), range(workers), []

    def send(a, b, size, after):
        return step.add((("out", a), ("in", b)), size * byte, after, message)

    def add_up(w, size, after):
        return step.add((("core", w),), size * byte / 8, after)

    share = sum(s for _, s in gradients)
    for w in ways:
        begin = [send(0, w, batch * 785 * 4, [])] if w else []
        at = step.add((("core", w),), compute * 0.4, begin)
        own = [None] * len(gradients)
        for i in reversed(range(len(gradients))):
            at = own[i] = step.add((("core", w),), compute * 0.5 * gradients[i][1] / share, [at])
        made.append(own)
    done = [[] for _ in ways]
    for bucket in buckets(gradients) if workers > 1 else []:
        size = sum(gradients[i][0] * 4 for i in bucket)
        own = [[made[w][i] for i in bucket] for w in ways]
        if size / workers < PIECE_MIN:  # a tree up, and down again
            sums = list(own)
            for w in reversed(ways):
                for child in (2 * w + 1, 2 * w + 2):
                    if child < workers:
                        sums[w] = [add_up(w, size, sums[w] + [send(child, w, size, sums[child])])]
            for w in ways:
                done[w].append(sums[0][0] if not w else send((w - 1) // 2, w, size, [done[(w - 1) // 2][-1]]))
            continue
        for piece in ways:
            at = own[(piece + 1) % workers]
            for k in range(2, workers + 1):
                w = (piece + k) % workers
                at = [add_up(w, size / workers, own[w] + [send((w - 1) % workers, w, size / workers, at)])]
            done[piece].append(at[0])
            for k in range(1, workers):
                w = (piece + k) % workers
                at = [send((w - 1) % workers, w, size / workers, at)]
                done[w].append(at[0])
    for w in ways:
        after = step.add((("core", w),), compute * 0.1, done[w] or made[w])
        if w:  # it tells the first that it is done
            step.add((), 0.0, [after], message)
    return step.run()


STEPS = {"allreduce": reduce_seconds, "ps": ps_seconds}
TASKS = {"allreduce": {"worker": 2}, "ps": {"worker": 1, "ps": 1}}  # what is run of each

# --- what is measured ---

def measured_seconds(build, folder, model, tasks, beside=1):
    """The median step; `beside`: so many such runs at once, which share the machine as tasks of one job do."""
    layers, batch, _ = MODELS[model]
    rounds, steps = int(os.environ.get("ROUNDS", 3)), int(os.environ.get("STEPS", 150))
    spec = {"model": {"layers": layers}, "data": {"dataset": "digits", "batch_size": batch},
            "train": {"steps": steps, "optimizer": {"name": "SGD", "learning_rate": 0.01}},
            "strategy": {"mode": "allreduce" if tasks["worker"] > 1 else "sync"}, "tasks": tasks}
    path = os.path.join(folder, "spec.json")
    with open(path, "w") as file:
        json.dump(spec, file)
    speeds = []
    for _ in range(rounds):
        runs = [subprocess.Popen([os.path.join(build, "trainyard"), "train", path, "--data", os.path.join(folder, "digits"),
                                  "--threads", "1", "--json", "--out", os.path.join(folder, f"run-{i}")], cwd=folder, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
                for i in range(beside)]
        for run in runs:
            said = run.communicate(timeout=300)[0]
            assert run.returncode == 0, said
            speeds.append(json.loads(said.strip().splitlines()[-1])["examples_per_second"])
    return tasks["worker"] * batch / statistics.median(speeds)


def solve(target, function):
    """x >= 0 where the growing function is the target; 0 if it is above it from the start."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < target else (low, middle)
    return low


def simulate(build, folder, mode, alone):
    two = {m: measured_seconds(build, folder, m, TASKS[mode]) for m in MODELS}
    workers, seconds_of = TASKS[mode]["worker"], STEPS[mode]
    message, byte = 1e-4, 1e-9
    for _ in range(20):  # each by the model that it counts in most
        message = solve(two["few bytes"], lambda x: seconds_of("few bytes", workers, alone["few bytes"], x, byte))
        byte = solve(two["many bytes"], lambda x: seconds_of("many bytes", workers, alone["many bytes"], message, x))
    print(json.dumps({"case": f"scaling, {mode}: link", "message_us": round(message * 1e6, 1),
                      "megabytes_per_second": round(1e-6 / byte) if byte else None}))
    seen = ("few bytes", "many bytes")
    for model in MODELS:
        if model in seen:
            continue
        said = seconds_of(model, workers, alone[model], message, byte)
        print(json.dumps({"case": f"scaling, {mode}: check of {model}", "tasks": TASKS[mode], "step_ms": round(said * 1e3, 3),
                          "measured_ms": round(two[model] * 1e3, 3), "ratio": round(said / two[model], 3)}))
    for model in MODELS:
        for count in (1, 2, 4, 8, 16, 32, 64) if model not in seen else ():
            seconds = seconds_of(model, count, alone[model], message, byte)
            print(json.dumps({"case": f"scaling, {mode}: {model}", "workers": count,
                              "examples_per_second": round(count * BATCH / seconds),
                              "efficiency": round(alone[model] / seconds, 3)}))


def main():
    build, folder = os.path.realpath(sys.argv[1]), tempfile.mkdtemp(prefix="trainyard-bench-")
    try:
        subprocess.run([os.path.join(build, "trainyard"), "dataset", "make", "digits", os.path.join(folder, "digits"), "--train",
                        "4000", "--test", "100"], check=True, capture_output=True)
        for mode in os.environ.get("MODES", "allreduce,ps").split(","):
            workers = TASKS[mode]["worker"]
            simulate(build, folder, mode, {m: measured_seconds(build, folder, m, {"worker": 1}, workers) for m in MODELS})
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
