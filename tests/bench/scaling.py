#!/usr/bin/env python3
"""scaling.py BUILD - how training scales to 64 workers, by all-reduce and by parameter servers (sync, async): a simulator fed
with what is measured here.

For each model TASKS tasks with a thread each train together (all workers; or a server and workers, one where it is async); every
TRACED-th step is traced.  Traces give the costs, the steps between, which are not traced, check what the simulator says of so
many tasks.  Costs, means all of them, so that their sums are means, too, with what is slow at times:
  of a model     a worker's seconds of each layer forward and back, in each traced step, as workers wait for the slowest; for
                 each byte that is cut, added, put together, updated
  of messages    (model with few bytes) how long the thread that computes needs to give a value away; how long that is on its way
                 to a task that waits; how long the first worker needs to start a task; what a step takes beyond its ops
  of a byte      (model with many bytes) what it adds to that way, in which the task that takes it copies it
None is fitted to a step that is checked.  The simulator runs a step op by op: that of replica_reduce.c (buckets, rings of pieces,
trees; batches from the first worker), or that of replica.c (variables asked for, gradients in, a server for every four workers,
variables where the fewest bytes are).  A task has a thread that computes and one that copies, which goes first where there is no
core for both; the tasks that check it share the machine's cores, each of many has a core of its own.

Prints lines of JSON: costs; for each model the step it says, that was measured, their ratio in each round; for 1 to 64 workers
examples a second and the share of one worker's speed that each keeps.  Ends with 1 where a model's ratio (the median of rounds)
is not within 10 %; the two models of messages' costs do not count.  ROUNDS=3 STEPS=120 TASKS=2 MODES=allreduce,sync,async
"""
import collections, glob, heapq, json, os, random, re, shutil, statistics, struct, subprocess, sys, tempfile

sys.path.pop(0)  # platform.py, beside this, is not Python's
BATCH, TRACED = 100, 5
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


COPY, GIVE, COMPUTE = range(3)  # GIVE: by the thread that computes, before anything else


class Step:
    """Ops with what they wait for.  A task has a thread that computes and one that copies; an outcome is there a little after
    its op."""

    def __init__(self):
        self.ops = []  # task, seconds, kind, later, users, waits

    def add(self, task, seconds, after=(), later=0.0, kind=COMPUTE):
        index = len(self.ops)
        self.ops.append([task, seconds, kind, later, [], len(after)])
        for op in after:
            self.ops[op][4].append(index)
        return index

    def send(self, a, b, size, after, cost, kind=GIVE):
        given = self.add(a, cost.give, after, cost.way, kind)
        return self.add(b, size * cost.byte, [given], 0.0, COPY)

    def run(self, cores=0):
        """Seconds until all is done; `cores`: of the machine that all tasks share; 0: each has a core of its own."""
        events = [(0.0, op[2], i, 0) for i, op in enumerate(self.ops) if not op[5]]  # time, kind, op, turn (0: it is ready)
        heapq.heapify(events)
        threads, machines, end, changed, done = {}, collections.defaultdict(list), 0.0, {}, 0
        while events:
            now, kind, i, turn = heapq.heappop(events)
            task, _, _, later, users, _ = self.ops[i]
            machine, key = 0 if cores else task, (task, kind == COPY)
            if key not in threads:
                threads[key] = Thread(*key)
                machines[machine].append(threads[key])
            thread = threads[key]
            if not turn:
                thread.queue.append(i)
            elif turn == thread.turn:
                thread.op, thread.since, end, done = None, None, max(end, now + later), done + 1
                for user in users:
                    self.ops[user][5] -= 1
                    if not self.ops[user][5]:
                        heapq.heappush(events, (now + later, self.ops[user][2], user, 0))
            # else it was interrupted
            changed[machine] = machines[machine]
            if not events or events[0][0] > now or events[0][3]:  # nothing else is ready at this time
                for of in changed.values():
                    self.turn(of, cores or 1, now, events)
                changed = {}
        assert done == len(self.ops)
        return end

    def turn(self, threads, cores, now, events):
        """Which threads of a machine run from now on."""
        for one in threads:
            if one.op is None and one.queue:
                one.op = min(one.queue, key=lambda op: self.ops[op][2])
                one.queue.remove(one.op)
                one.rest = self.ops[one.op][1]
        copied = {one.task for one in threads if one.copies and one.op is not None}
        ready = sorted((one for one in threads if one.op is not None), key=lambda one: (not one.copies, one.task in copied))
        for place, one in enumerate(ready):
            if place < cores and one.since is None:
                one.since, one.turn = now, one.turn + 1
                heapq.heappush(events, (now + one.rest, self.ops[one.op][2], one.op, one.turn))
            elif place >= cores and one.since is not None:
                one.rest, one.since, one.turn = one.rest - (now - one.since), None, one.turn + 1


class Thread:
    def __init__(self, task, copies):
        self.task, self.copies, self.queue = task, copies, []
        self.op, self.rest, self.since, self.turn = None, 0.0, None, 0


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


def begin(step, tasks, cost):
    """The first worker starts the other tasks, then itself; when each of them begins."""
    others = []
    for task in tasks[1:]:
        others.append([step.add(tasks[0], cost.start, others[-1], kind=COPY)] if others else [])
    return [[step.add(tasks[0], cost.start, others[-1], kind=COPY)] if others else [], *others]


def backward(step, w, seconds, at, given):
    """Gradients from the last layer on; given(i): seconds in which the thread gives those of a layer away."""
    made = [None] * len(seconds)
    for i in reversed(range(len(seconds))):
        at = made[i] = [step.add(w, seconds[i] + given(i), at)]
    return made


def ps_step(model, passes, parts, cost, apart=0):
    """Parameter servers, one for every four workers; `apart`: so many steps of each worker, that wait for nobody."""
    gradients, workers = MODELS[model][2], len(passes)
    step, servers = Step(), max(1, workers // 4)
    held, place = [0] * servers, []
    for numbers, _ in gradients:
        place.append(held.index(min(held)))
        held[place[-1]] += numbers
    groups = [[("w", w)] for w in range(workers)] if apart else [[("w", w) for w in range(workers)]]
    for group in groups:
        last = []
        for _ in range(apart or 1):
            last = ps_round(step, model, group, place, passes, parts, cost, last)
    return step


def ps_round(step, model, group, place, passes, parts, cost, after):
    """One step of a group of workers that wait for each other; begins after those ops."""
    _, batch, gradients = MODELS[model]
    servers = max(1, len(passes) // 4)
    tasks = [("w", 0)] + [("s", s) for s in range(servers)] + [w for w in group if w != ("w", 0)]
    begun = dict(zip(tasks, begin(step, tasks, cost)))
    begun = {task: after + ops for task, ops in begun.items()}
    sent = [[] for _ in gradients]
    for w in group:
        at = begun[w]
        if w != ("w", 0):
            at = [step.send(("w", 0), w, batch * 785 * 4, begun["w", 0], cost, COPY)]  # a thread of its own there
        ask = step.add(w, 0.0, begun[w], cost.way, GIVE)
        came = [step.send(("s", place[i]), w, n * 4, [*begun["s", place[i]], ask], cost) for i, (n, _) in enumerate(gradients)]
        for layer, seconds in enumerate(passes[w[1]][0]):
            at = [step.add(w, seconds, at + came[2 * layer:2 * layer + 2])]
        made = backward(step, w, passes[w[1]][1], at, lambda layer: 0.0)
        for i, (numbers, _) in enumerate(gradients):
            sent[i].append(step.send(w, ("s", place[i]), numbers * 4, made[i // 2], cost))
    ready = [[sent[i] for i in range(len(gradients)) if place[i] == s] for s in range(servers)]
    done = []
    for i, (numbers, _) in enumerate(gradients):  # updates wait for all gradients
        sums = numbers * 4 * parts.update * (len(group) - 1)  # bytes read and written as by an update
        done.append(step.add(("s", place[i]), numbers * 4 * parts.update + sums, sum(ready[place[i]], [])))
    return [step.add(("w", 0), cost.turn, done, kind=COPY)]


def reduce_step(model, passes, parts, cost):
    """A step of workers that sum gradients among themselves."""
    (_, batch, gradients), workers = MODELS[model], len(passes)
    step, ways, made = Step(), range(workers), []
    inputs = batch * 785 * 4
    begun = begin(step, list(ways), cost)
    split = [step.add(0, inputs * workers * parts.split, begun[0])] if workers > 1 else []
    for w in ways:
        at = begun[w] + ([step.send(0, w, inputs, split, cost)] if w else split)
        at = [step.add(w, sum(passes[w][0]), at)]
        large = lambda layer: workers > 1 and gradients[2 * layer][0] * 4 >= max(ALONE, PIECE_MIN * workers)
        own = backward(step, w, passes[w][1], at, lambda layer: gradients[2 * layer][0] * 4 * parts.split * large(layer))
        made.append([own[i // 2][0] for i in range(len(gradients))])
    done = [[] for _ in ways]
    for bucket in buckets(gradients) if workers > 1 else []:
        size = sum(gradients[i][0] * 4 for i in bucket)
        own = [[made[w][i] for i in bucket] for w in ways]
        if size / workers < PIECE_MIN:  # a tree up, and down again
            sums = list(own)
            for w in reversed(ways):
                for child in (2 * w + 1, 2 * w + 2):
                    if child < workers:
                        came = step.send(child, w, size, sums[child], cost)
                        sums[w] = [step.add(w, size * parts.add, sums[w] + [came])]
            for w in ways:
                done[w].append(sums[0][0] if not w else
                               step.send((w - 1) // 2, w, size, [done[(w - 1) // 2][-1]], cost))
            continue
        pieces = [[] for _ in ways]
        for piece in ways:
            at = own[(piece + 1) % workers]
            for k in range(2, workers + 1):
                w = (piece + k) % workers
                came = step.send((w - 1) % workers, w, size / workers, at, cost)
                at = [step.add(w, size / workers * parts.add, own[w] + [came])]
            pieces[piece].append(at[0])
            for k in range(1, workers):
                w = (piece + k) % workers
                at = [step.send((w - 1) % workers, w, size / workers, at, cost)]
                pieces[w].append(at[0])
        for w in ways:
            done[w].append(step.add(w, size * parts.concat, pieces[w]))
    total = sum(numbers * 4 for numbers, _ in gradients)
    ends = [step.add(w, total * parts.update, done[w] or made[w]) for w in ways]
    step.add(0, cost.turn, ends)
    return step


SEEN = ("few bytes", "many bytes")  # what messages cost comes from these
TASKS = int(os.environ.get("TASKS", 2))
MODES = {"allreduce": {"worker": TASKS}, "sync": {"worker": TASKS - 1, "ps": 1}, "async": {"worker": 1, "ps": 1}}  # a real run's
CORES = len(os.sched_getaffinity(0))
DRAWN = 8  # steps that are simulated of many workers, at least
APART = 4  # steps of each worker that are simulated, where they do not wait for each other


def simulated(mode, model, workers, parts, cost, cores=0):
    """Seconds of a step, in which each worker has a batch: the mean of steps whose workers take as long as those of traced ones."""
    taken, drawn = [], random.Random(1)
    apart = APART if mode == "async" else 0
    for passes in parts.passes if cores else range(max(DRAWN, 128 // workers)):
        if not cores:
            passes = [drawn.choice(drawn.choice(parts.passes)) for _ in range(workers)]
        if mode == "allreduce":
            taken.append(reduce_step(model, passes, parts, cost).run(cores))
        else:
            taken.append(ps_step(model, passes, parts, cost, apart).run(cores) / (apart or 1))
    return statistics.mean(taken)


# --- what is measured ---

def fields(data):
    """Of a message of protobuf: numbers and values."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value, shift = value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value
    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            yield number, data[at:at + size]
            at += size


def events(path):
    with open(path, "rb") as file:
        data, at = file.read(), 0
    while at < len(data):
        size, = struct.unpack_from("<Q", data, at)
        yield list(fields(data[at + 12:at + 12 + size]))
        at += 16 + size


class Node:
    """What a traced step tells of one: times in seconds, bytes of its first output, names whose values came from other tasks."""

    def __init__(self, device, data):
        told, outputs = {}, []
        for number, value in fields(data):
            told[number] = value
            if number == 7:
                outputs.append(value)
        self.device, self.name = device, told[1].decode()
        self.start = told[13] / 1e9
        self.end = self.start + told.get(16, 0) / 1e9
        place = dict(fields(dict(fields(outputs[0])).get(3, b""))).get(4, b"") if outputs else b""
        self.bytes = dict(fields(place)).get(1, 0)
        self.received = re.findall(r"([\w/]+)(?::\d+)?_R\d+\b", told.get(8, b"").decode())

        self.seconds = self.end - self.start  # with what the thread does behind it


def traced(data):
    """Nodes of a traced step, as they began."""
    found = []
    for number, stats in fields(data):
        for device in (value for n, value in fields(stats) if n == 1) if number == 1 else ():
            of = list(fields(device))
            found += [Node(of[0][1].decode(), value) for n, value in of if n == 2]
    return sorted((node for node in found if node.name != "_SOURCE"), key=lambda node: node.start), found


class Run:
    """A real run: how long its steps took, and what traced ones tell."""

    def __init__(self, path, every):
        times, self.steps, self.starts = {}, [], []
        for event in events(path):
            told = dict(event)
            if 5 in told and 2 in told:
                times.setdefault(told[2], struct.unpack("<d", told[1])[0])
            elif 8 in told:
                nodes, all_nodes = traced(dict(fields(told[8]))[2])
                self.steps.append(nodes)
                begun = {n.device: n.start for n in all_nodes if n.name == "_SOURCE"}
                self.starts.append(abs(max(begun.values()) - min(begun.values())))
        self.steps, self.starts = self.steps[2:], self.starts[2:]  # plans are made in the first
        told = sorted(step for step in times if step > 2 * every)  # quick steps are not all told
        for a, b in self.next_to():
            a.seconds = b.start - a.start
        between = [(times[b] - times[a], b - a) for a, b in zip(told, told[1:]) if a // every == b // every]
        self.step = sum(seconds for seconds, _ in between) / sum(steps for _, steps in between)
        self.sent = {name for nodes in self.steps for node in nodes for name in node.received}
        self.span = statistics.mean(max(n.end for n in nodes) - nodes[0].start for nodes in self.steps)


    def next_to(self):
        """Pairs of nodes on a task, of which the second follows without having waited for another task."""
        for nodes in self.steps:
            last = {}
            for node in nodes:
                if node.device in last and not node.received and not node.name.startswith(("SGD/", "train/")):
                    yield last[node.device], node
                last[node.device] = node

    def ways(self):
        """Seconds and bytes of values that came to a task that waited for them from before they were there."""
        found = []
        for nodes in self.steps:
            named, last = {n.name: n for n in nodes}, {}
            for node in nodes:
                froms = [named[name] for name in node.received if name in named and named[name].device != node.device]
                if froms and node.device in last:
                    newest = max(froms, key=lambda n: n.end)
                    if last[node.device] <= newest.end:
                        found.append((node.start - newest.end, newest.bytes))
                last[node.device] = node.end
        return found


class Parts:
    """Of a model: seconds of a worker's layers, and seconds for each byte that is cut, added, put together, and of updates."""

    def __init__(self, run, model):
        seconds, sizes = {}, {}
        for nodes in run.steps:
            for node in nodes:
                seconds.setdefault((node.device, node.name), []).append(node.seconds)
                sizes[node.name] = node.bytes
        self.mean = {key: statistics.mean(values) for key, values in seconds.items()}
        order = [node for node in run.steps[-1]]
        workers = sorted({n.device for n in order if "/job:worker" in n.device})
        known = {m[1] for n in order for m in [re.match(r"replica_\d+/(\w+)/ReadVariableOp", n.name)] if m}
        self.passes = [[self.passed([n for n in nodes if n.device == w], known) for w in workers] for nodes in run.steps]
        self.split = self.rate(sizes, r"replicas/bucket_\d+/SplitV", 2)
        self.add = self.rate(sizes, r"replicas/bucket_\d+/Mul", 1)
        self.concat = self.rate(sizes, r"replicas/bucket_\d+/concat", 1)
        updates = sum(s for (_, name), s in self.mean.items() if name.startswith("SGD/")) / len(workers)
        self.bytes = sum(numbers * 4 for numbers, _ in MODELS[model][2])
        self.update = updates / self.bytes

    def computes(self):
        """A step of one worker that has nobody to speak to."""
        each = [sum(forward) + sum(back) for step in self.passes for forward, back in step]
        return statistics.mean(each) + self.update * self.bytes

    @staticmethod
    def passed(nodes, known):
        """A worker's seconds of each layer with variables, forward and back."""
        layers, forward, back, at = [], [], {}, 0.0
        for node in nodes:
            parts, seconds = node.name.split("/"), node.seconds
            if parts[0].startswith("replica_"):
                at += seconds
                if parts[1] in known and parts[1] not in layers and "ReadVariable" not in node.name:
                    layers.append(parts[1])
                    forward.append(0.0)
                if forward:
                    forward[-1], at = forward[-1] + at, 0.0
            elif parts[0] == "gradients":
                at += seconds
                if parts[-1] in ("MatMul_1", "Conv2DBackpropFilter"):
                    back[parts[2]], at = at, 0.0
        return forward, [back[layer] for layer in layers]

    def rate(self, sizes, pattern, times):
        """Seconds for each byte, of nodes with large values; `times`: what goes in is so often what its first output has."""
        found = [(s, sizes[name] * times) for (_, name), s in self.mean.items() if re.match(pattern, name)]
        found = [(s, size) for s, size in found if size >= PIECE_MIN]
        return sum(s for s, _ in found) / sum(size for _, size in found) if found else 0.0


class Cost:
    """Of messages and their bytes (the docstring above), in seconds."""

    def __init__(self, few, many):
        self.give = statistics.mean(b.start - a.end for a, b in few.next_to() if a.name in few.sent)
        self.way = max(0.0, statistics.mean(way for way, _ in few.ways()) - self.give)
        large = [(way - self.give - self.way, size) for way, size in many.ways() if size >= PIECE_MIN]
        self.byte = max(0.0, sum(way for way, _ in large) / sum(size for _, size in large))
        self.start = statistics.mean(few.starts)
        self.turn = max(0.0, few.step - few.span)


def measured(build, folder, model, mode):
    """A real run of two tasks."""
    layers, batch, _ = MODELS[model]
    scale = {"cnn": 1 / 3, "few bytes": 20}.get(model, 1)
    steps, every = int(int(os.environ.get("STEPS", 120)) * scale), TRACED * int(max(1, scale))
    spec = {"model": {"layers": layers}, "data": {"dataset": "digits", "batch_size": batch},
            "train": {"steps": steps, "optimizer": {"name": "SGD", "learning_rate": 0.01}},
            "strategy": {"mode": mode}, "tasks": MODES[mode], "trace": {"every_steps": every}}
    path, out = os.path.join(folder, "spec.json"), os.path.join(folder, "run")
    with open(path, "w") as file:
        json.dump(spec, file)
    subprocess.run([os.path.join(build, "trainyard"), "train", path, "--data", os.path.join(folder, "digits"), "--threads", "1",
                    "--json", "--out", out], check=True, capture_output=True, timeout=300,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})
    run = Run(glob.glob(os.path.join(out, "events*"))[0], every)
    shutil.rmtree(out)
    return run


# --- what follows from it ---

def middle(rounds, digits):
    return round(statistics.median(rounds), digits)


def check(mode, rounds, costs, parts):
    """Whether all models' steps are what the simulator says of them."""
    right = True
    for model in MODELS:
        workers = MODES[mode]["worker"]
        said = [simulated(mode, model, workers, p[model], cost, CORES) for p, cost in zip(parts, costs)]
        steps = [found[model].step for found in rounds]
        ratio = middle([a / b for a, b in zip(said, steps)], 3)
        right = right and (model in SEEN or 0.9 <= ratio <= 1.1)
        print(json.dumps({"case": f"scaling, {mode}: {'costs from' if model in SEEN else 'check of'} {model}", "tasks": MODES[mode],
                          "step_ms": middle([s * 1e3 for s in said], 3), "measured_ms": middle([s * 1e3 for s in steps], 3),
                          "computes_ms": middle([p[model].computes() * 1e3 for p in parts], 3), "ratio": ratio,
                          "rounds": [round(a / b, 3) for a, b in zip(said, steps)]}), flush=True)
    return right


def simulate(mode, rounds):
    """Each round has costs of its own, as a machine is not as fast at all times; what is printed are medians of them."""
    costs = [Cost(found["few bytes"], found["many bytes"]) for found in rounds]
    parts = [{model: Parts(run, model) for model, run in found.items()} for found in rounds]
    print(json.dumps({"case": f"scaling, {mode}: messages", **{f"{name}_us": middle([getattr(c, name) * 1e6 for c in costs], 1)
                                                              for name in ("give", "way", "start", "turn")},
                      "byte_ns": middle([c.byte * 1e9 for c in costs], 3)}))
    right = check(mode, rounds, costs, parts)
    for model in MODELS:
        for count in (1, 2, 4, 8, 16, 32, 64) if model not in SEEN else ():
            each = [simulated(mode, model, count, p[model], cost) for p, cost in zip(parts, costs)]
            alone = [p[model].computes() for p in parts]
            print(json.dumps({"case": f"scaling, {mode}: {model}", "workers": count,
                              "examples_per_second": middle([count * BATCH / s for s in each], 0),
                              "efficiency": middle([a / s for a, s in zip(alone, each)], 3)}))
    return right


def main():
    build, folder = os.path.realpath(sys.argv[1]), tempfile.mkdtemp(prefix="trainyard-bench-")
    right = True
    try:
        subprocess.run([os.path.join(build, "trainyard"), "dataset", "make", "digits", os.path.join(folder, "digits"), "--train",
                        "4000", "--test", "100"], check=True, capture_output=True)
        for mode in os.environ.get("MODES", ",".join(MODES)).split(","):
            right &= simulate(mode, [{model: measured(build, folder, model, mode) for model in MODELS}
                                     for _ in range(int(os.environ.get("ROUNDS", 3)))])
    finally:
        shutil.rmtree(folder)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
