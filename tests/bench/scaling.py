#!/usr/bin/env python3
"""scaling.py BUILD - how training scales to 64 workers, by all-reduce and by parameter servers: a simulator fed with what is
measured here.

Measured, without the steps in which plans are made: the step of one worker alone, as many of them at once as the job has; and of
two tasks (a thread each: two workers; a worker and a server) the step and the seconds of processor in it.  What the processors
did beside computing, on two models that do little else than send, one with many bytes and one with few, is what messages and
their bytes cost; what is left of the shortest step is how long one is on its way.  The simulator then runs a step message by
message: that of replica_reduce.c (buckets, rings of pieces, trees; batches from the first worker), or that of replica.c
(variables out, gradients in, a server for every four workers, variables where the fewest bytes are).  Each task has one core,
on which messages interrupt what computes.  No step but that with few bytes is fitted; real runs of two tasks on the others check
it, each with a line of JSON: the step it says, the step that was measured, their ratio in each round (a round has costs of its
own, as a machine is not as fast at all times); and for 1 to 64 workers examples a second and the share of one worker's speed that
each of them keeps.  ROUNDS=3 STEPS=100 MODES=allreduce,ps
"""
import heapq, json, os, resource, shutil, statistics, subprocess, sys, tempfile

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
    """Ops with what they wait for.  Each task has one core: messages go first on it, and what computes there goes on after
    them, as threads of a task share its core; an outcome is there a little after its op."""

    def __init__(self):
        self.ops = []  # core (None: none), seconds, whether it is a message's, later, users, waits

    def add(self, core, seconds, after=(), later=0.0, message=False):
        index = len(self.ops)
        self.ops.append([core, seconds, message, later, [], len(after)])
        for op in after:
            self.ops[op][4].append(index)
        return index

    def send(self, a, b, size, after, cost):
        """Half of the work is the sender's, half the receiver's, and between them it is on its way."""
        half = (cost.message + size * cost.byte) / 2
        return self.add(b, half, [self.add(a, half, after, cost.wait, True)], 0.0, True)

    def run(self):
        events = [(0.0, i, None) for i, op in enumerate(self.ops) if not op[5]]  # time, op, None: ready, else what of its core
        heapq.heapify(events)
        cores, end = {}, 0.0
        while events:
            now, i, turn = heapq.heappop(events)
            core, seconds, message, later, users, _ = self.ops[i]
            at = cores.setdefault(core, {"turn": 0, "op": None, "queue": [], "number": 0})
            if turn is None and core is not None:  # in line: messages, then the rest; who was interrupted is first of them
                at["number"] += 1
                heapq.heappush(at["queue"], (not message, at["number"], i, seconds))
                if at["op"] and message and not self.ops[at["op"][0]][2]:
                    running, until, number = at["op"]
                    heapq.heappush(at["queue"], (True, number, running, until - now))
                    at["op"] = None
            elif turn is None or turn == at["turn"]:
                end = max(end, now + later)
                for user in users:
                    self.ops[user][5] -= 1
                    if not self.ops[user][5]:
                        heapq.heappush(events, (now + later, user, None))
                at["op"] = None
            else:
                continue  # it was interrupted
            if core is not None and not at["op"] and at["queue"]:
                _, number, op, rest = heapq.heappop(at["queue"])
                at["turn"] += 1
                at["op"] = (op, now + rest, number)
                heapq.heappush(events, (now + rest, op, at["turn"]))
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


def ps_step(model, workers, compute, cost):
    """The same with parameter servers."""
    _, batch, gradients = MODELS[model]
    step, share = Step(), sum(s for _, s in gradients)
    servers = max(1, workers // 4)
    held, place = [0] * servers, []
    for numbers, _ in gradients:
        place.append(held.index(min(held)))
        held[place[-1]] += numbers
    sent = [[] for _ in gradients]
    for w in range(workers):
        begin = [step.send(("w", 0), ("w", w), batch * 785 * 4, [], cost)] if w else []
        came = [step.send(("s", place[i]), ("w", w), n * 4, [], cost) for i, (n, _) in enumerate(gradients)]
        at = begin
        for i, (_, part) in enumerate(gradients):
            at = [step.add(("w", w), compute * 0.4 * part / share, at + [came[i]])]
        for i in reversed(range(len(gradients))):
            at = [step.add(("w", w), compute * 0.5 * gradients[i][1] / share, at)]
            sent[i].append(step.send(("w", w), ("s", place[i]), gradients[i][0] * 4, at, cost))
    total = sum(n for n, _ in gradients)
    updates = [[] for _ in range(servers)]
    for i, (numbers, _) in enumerate(gradients):  # updates wait for all gradients
        updates[place[i]].append(step.add(("s", place[i]), compute * 0.1 * numbers / total, sent[i]))
    for i, done in enumerate(updates):  # each server tells that it is done
        step.send(("s", i), ("w", 0), 0, done, cost)
    return step


def reduce_step(model, workers, compute, cost):
    """A step; compute: seconds of one worker alone."""
    _, batch, gradients = MODELS[model]
    step, ways, made = Step(), range(workers), []
    share = sum(s for _, s in gradients)
    for w in ways:
        begin = [step.send(0, w, batch * 785 * 4, [], cost)] if w else []
        at = step.add(w, compute * 0.4, begin)
        own = [None] * len(gradients)
        for i in reversed(range(len(gradients))):
            at = own[i] = step.add(w, compute * 0.5 * gradients[i][1] / share, [at])
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
                        sums[w] = sums[w] + [step.send(child, w, size, sums[child], cost)]
            for w in ways:
                done[w].append(step.add(0, 0.0, sums[0]) if not w else
                               step.send((w - 1) // 2, w, size, [done[(w - 1) // 2][-1]], cost))
            continue
        for piece in ways:
            at = own[(piece + 1) % workers]
            for k in range(2, workers + 1):
                w = (piece + k) % workers
                at = own[w] + [step.send((w - 1) % workers, w, size / workers, at, cost)]
            at = [step.add(piece, 0.0, at)]
            done[piece].append(at[0])
            for k in range(1, workers):
                w = (piece + k) % workers
                at = [step.send((w - 1) % workers, w, size / workers, at, cost)]
                done[w].append(at[0])
    for w in ways:
        after = step.add(w, compute * 0.1, done[w] or made[w])
        if w:  # it tells the first that it is done
            step.send(w, 0, 0, [after], cost)
    return step


STEPS = {"allreduce": reduce_step, "ps": ps_step}
SEEN = ("few bytes", "many bytes")  # what messages cost comes from these
TASKS = {"allreduce": {"worker": 2}, "ps": {"worker": 1, "ps": 1}}  # what is run of each

# --- what is measured ---

class Cost:
    """Of a message and of each of its bytes, in seconds of a core at both ends together; and for how long it is on its way."""

    def __init__(self, message=0.0, byte=0.0, wait=0.0):
        self.message, self.byte, self.wait = message, byte, wait


def ran(build, folder, model, tasks, steps, beside):
    """Seconds of all steps, and of cores; `beside`: so many such runs at once, which share the machine as tasks of a job do."""
    layers, batch, _ = MODELS[model]
    spec = {"model": {"layers": layers}, "data": {"dataset": "digits", "batch_size": batch},
            "train": {"steps": steps, "optimizer": {"name": "SGD", "learning_rate": 0.01}},
            "strategy": {"mode": "allreduce" if tasks["worker"] > 1 else "sync"}, "tasks": tasks}
    path = os.path.join(folder, "spec.json")
    with open(path, "w") as file:
        json.dump(spec, file)
    before, taken = resource.getrusage(resource.RUSAGE_CHILDREN), []
    runs = [subprocess.Popen([os.path.join(build, "trainyard"), "train", path, "--data", os.path.join(folder, "digits"),
                              "--threads", "1", "--json", "--out", os.path.join(folder, f"run-{i}")], cwd=folder, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
            for i in range(beside)]
    for run in runs:
        said = run.communicate(timeout=300)[0]
        assert run.returncode == 0, said
        taken.append(tasks["worker"] * batch * steps / json.loads(said.strip().splitlines()[-1])["examples_per_second"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return statistics.mean(taken), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(build, folder, model, tasks, beside=1):
    """Seconds of a step, and of cores in it: without those that it takes to begin, which are in a short run, too."""
    steps = int(os.environ.get("STEPS", 100)) // (3 if model == "cnn" else 1)
    few = max(1, steps // 5)
    less, more = (ran(build, folder, model, tasks, n, beside) for n in (few, steps + few))
    return tuple((m - l) / steps for l, m in zip(less, more))


def measure(build, folder, mode):
    """By model: a worker's step beside as many as there are of them, and a step of the tasks with its seconds of cores."""
    found = {}
    for model in MODELS:
        alone = measured(build, folder, model, {"worker": 1}, TASKS[mode]["worker"])[0]
        found[model] = (alone, *measured(build, folder, model, TASKS[mode]))
    return found


# --- what follows from it ---

def solve(target, function):
    """x >= 0 where the growing function is the target; 0 if it is above it from the start."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < target else (low, middle)
    return low


def work_of_messages(step):
    return sum(seconds for _, seconds, message, *_ in step.ops if message)


def cost_of(mode, found):
    """What the cores do beside computing gives the costs of messages and bytes; what is left of the shortest step, the way."""
    make, workers, rows = STEPS[mode], TASKS[mode]["worker"], []
    for model in SEEN:
        alone, _, cores = found[model]
        messages = work_of_messages(make(model, workers, alone, Cost(message=1.0)))
        sent = work_of_messages(make(model, workers, alone, Cost(byte=1.0)))
        rows.append((messages, sent, max(0.0, cores - workers * alone)))
    (m1, b1, c1), (m2, b2, c2) = rows
    byte = max(0.0, (c2 * m1 - c1 * m2) / (b2 * m1 - b1 * m2))
    message = max(0.0, (c1 - b1 * byte) / m1)
    alone, step, _ = found[SEEN[0]]
    return Cost(message, byte, solve(step, lambda x: make(SEEN[0], workers, alone, Cost(message, byte, x)).run()))


def middle(rounds, digits):
    return round(statistics.median(rounds), digits)


def simulate(mode, rounds):
    """Each round has costs of its own, as a machine is not as fast at all times; what is printed are medians of them."""
    workers, make = TASKS[mode]["worker"], STEPS[mode]
    costs = [cost_of(mode, found) for found in rounds]
    print(json.dumps({"case": f"scaling, {mode}: messages", "core_us": middle([c.message * 1e6 for c in costs], 1),
                      "core_ns_per_byte": middle([c.byte * 1e9 for c in costs], 3),
                      "way_us": middle([c.wait * 1e6 for c in costs], 1)}))
    for model in MODELS:
        said = [make(model, workers, found[model][0], cost).run() for found, cost in zip(rounds, costs)]
        steps = [found[model][1] for found in rounds]
        print(json.dumps({"case": f"scaling, {mode}: {'fit' if model == SEEN[0] else 'check'} of {model}", "tasks": TASKS[mode],
                          "step_ms": middle([s * 1e3 for s in said], 3), "measured_ms": middle([s * 1e3 for s in steps], 3),
                          "alone_ms": middle([found[model][0] * 1e3 for found in rounds], 3),
                          "cores_ms": middle([found[model][2] * 1e3 for found in rounds], 3),
                          "ratio": middle([a / b for a, b in zip(said, steps)], 3),
                          "rounds": [round(a / b, 3) for a, b in zip(said, steps)]}))
    for model in MODELS:
        for count in (1, 2, 4, 8, 16, 32, 64) if model not in SEEN else ():
            shares = [found[model][0] / make(model, count, found[model][0], cost).run() for found, cost in zip(rounds, costs)]
            speeds = [count * BATCH * share / found[model][0] for share, found in zip(shares, rounds)]
            print(json.dumps({"case": f"scaling, {mode}: {model}", "workers": count,
                              "examples_per_second": middle(speeds, 0), "efficiency": middle(shares, 3)}))


def main():
    build, folder = os.path.realpath(sys.argv[1]), tempfile.mkdtemp(prefix="trainyard-bench-")
    try:
        subprocess.run([os.path.join(build, "trainyard"), "dataset", "make", "digits", os.path.join(folder, "digits"), "--train",
                        "4000", "--test", "100"], check=True, capture_output=True)
        for mode in os.environ.get("MODES", "allreduce,ps").split(","):
            simulate(mode, [measure(build, folder, mode) for _ in range(int(os.environ.get("ROUNDS", 3)))])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
