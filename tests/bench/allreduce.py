#!/usr/bin/env python3
"""allreduce.py BUILD [PEERS] - all-reduce training of 2 workers with a thread each on this machine.

Prints for each model examples a second of ours (strategy allreduce) and, where PEERS/bin/python is there, of PyTorch's
DistributedDataParallel over gloo, in turns: medians, their ratio, and the loss at the end, which says that both learn.  The
first steps, in which either makes its plans, do not count (ours: the time of a run that ends after them is taken off).  Of
PyTorch's settings (SETTINGS: as it is, channels last, compiled, both) the one that is fastest in a first round of its own
counts.  BUILD/bench/allreduce.json has every run.  ROUNDS=3 STEPS=300 MODELS=mlp,cnn

  allreduce.py torch MODEL STEPS SETTING DATASET    what PEERS/bin/python runs
"""
import json, os, shutil, statistics, subprocess, sys, tempfile, time

WORKERS, BATCH, RATE = 2, 100, 0.05  # a batch for each worker
BEFORE = 10  # steps before time is taken, in which plans are made
MODELS = {
    "mlp": [{"layer": "Flatten"}, {"layer": "Dense", "units": 512, "activation": "relu"},
            {"layer": "Dense", "units": 512, "activation": "relu"}, {"layer": "Dense", "units": 10}],
    "cnn": [{"layer": "Conv2D", "filters": 32, "kernel_size": 5, "padding": "same", "activation": "relu"},
            {"layer": "MaxPooling2D", "pool_size": 2},
            {"layer": "Conv2D", "filters": 64, "kernel_size": 5, "padding": "same", "activation": "relu"},
            {"layer": "MaxPooling2D", "pool_size": 2}, {"layer": "Flatten"},
            {"layer": "Dense", "units": 512, "activation": "relu"}, {"layer": "Dense", "units": 10}],
}
SETTINGS = {"mlp": "eager,compile", "cnn": "eager,channels_last,compile_channels_last"}


# --- PyTorch's side ---

def torch_model(name):
    import torch.nn as nn
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10))


def torch_examples(dataset, rank):
    """A worker's share of the digits that ours trains on, all in memory as they are used."""
    import numpy as np
    import torch
    read = [np.fromfile(os.path.join(dataset, "train-" + name), np.uint8) for name in ("images-idx3-ubyte", "labels-idx1-ubyte")]
    images = torch.from_numpy(read[0][16:].reshape(-1, 1, 28, 28)[rank::WORKERS].copy()).float() / 255
    return images, torch.from_numpy(read[1][8:][rank::WORKERS].astype(np.int64))


def torch_worker(rank, name, steps, setting, dataset, store):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=WORKERS)
    model, (images, labels) = torch_model(name), torch_examples(dataset, rank)
    for layer in model:  # from where ours begins, too
        if hasattr(layer, "weight"):
            torch.nn.init.xavier_uniform_(layer.weight)
            torch.nn.init.zeros_(layer.bias)
    if "channels_last" in setting:
        model, images = model.to(memory_format=torch.channels_last), images.contiguous(memory_format=torch.channels_last)
    model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if "compile" in setting:
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, fused=True)
    lossf = torch.nn.CrossEntropyLoss()
    for step in range(steps + BEFORE):
        if step == BEFORE:
            dist.barrier()
            start = time.perf_counter()
        at = step % (len(images) // BATCH) * BATCH
        optimizer.zero_grad(set_to_none=True)
        loss = lossf(model(images[at:at + BATCH]), labels[at:at + BATCH])
        loss.backward()
        optimizer.step()
    dist.barrier()
    if rank == 0:
        seconds = time.perf_counter() - start
        print(json.dumps({"examples_per_second": WORKERS * BATCH * steps / seconds, "loss": loss.item()}), flush=True)
    dist.destroy_process_group()


def run_torch(name, steps, setting, dataset):
    import torch.multiprocessing as mp
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(torch_worker, (name, int(steps), setting, dataset, os.path.join(folder, "store")), nprocs=WORKERS)


# --- both ---

def last_line(words, cwd=None, **environment):
    out = subprocess.run(words, capture_output=True, text=True, timeout=600, cwd=cwd,
                         env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout.strip().splitlines()[-1])


def ours_seconds(build, folder, name, steps):
    """Of all steps; and the loss at the end."""
    spec = {"model": {"layers": MODELS[name]}, "data": {"dataset": "digits", "batch_size": BATCH},
            "train": {"steps": steps, "eval_every": 0, "optimizer": {"name": "SGD", "learning_rate": RATE}},
            "strategy": {"mode": "allreduce"}, "tasks": {"worker": WORKERS}}
    path = os.path.join(folder, name + ".json")
    with open(path, "w") as file:
        json.dump(spec, file)
    end = last_line([os.path.join(build, "trainyard"), "train", path, "--data", os.path.join(folder, "digits"), "--threads", "1",
                     "--json"], folder)
    return WORKERS * BATCH * steps / end["examples_per_second"], end["metrics"]["loss"]


def ours(build, folder, name, steps):
    seconds, loss = ours_seconds(build, folder, name, steps + BEFORE)
    seconds -= ours_seconds(build, folder, name, BEFORE)[0]
    return {"examples_per_second": WORKERS * BATCH * steps / seconds, "loss": loss}


def gloo(peers, folder, name, steps, setting):
    shim = os.path.join(peers, "mklshim.so")  # without it MKL is slow on processors that are not Intel's
    return last_line([os.path.join(peers, "bin/python"), os.path.realpath(__file__), "torch", name, str(steps), setting,
                      os.path.join(folder, "digits")], PYTHONSAFEPATH="1",  # platform.py, beside this, is not Python's
                     **({"LD_PRELOAD": shim} if os.path.exists(shim) else {}))


def measure(build, peers, folder, name):
    rounds, steps = int(os.environ.get("ROUNDS", 3)), int(os.environ.get("STEPS", 300))
    best, mine, theirs = None, [], []
    if peers:
        settings = os.environ.get("SETTINGS", SETTINGS[name]).split(",")
        best = max(settings, key=lambda setting: gloo(peers, folder, name, steps, setting)["examples_per_second"])
    for _ in range(rounds):
        mine.append(ours(build, folder, name, steps))
        if peers:
            theirs.append(gloo(peers, folder, name, steps, best))
    line = {"case": "allreduce " + name, "workers": WORKERS, "steps": steps, "rounds": rounds}
    for who, runs in (("ours", mine), ("gloo_ddp", theirs)):
        if runs:
            line[who] = round(statistics.median(r["examples_per_second"] for r in runs), 1)
            line[who + "_all"] = [round(r["examples_per_second"], 1) for r in runs]
            line[who + "_loss"] = round(runs[-1]["loss"], 4)
    if theirs:
        line.update(setting=best, ratio=round(line["ours"] / line["gloo_ddp"], 3))
    return line


def main():
    build = os.path.realpath(sys.argv[1])
    peers = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
    if peers and subprocess.run([os.path.join(peers, "bin/python"), "-c", "import torch"], capture_output=True).returncode:
        print(f"PyTorch is left out: {peers}/bin/python has none")
        peers = None
    folder, lines = tempfile.mkdtemp(prefix="trainyard-bench-"), []
    print(f"{'all-reduce, 2 workers, 1 thread':32} {'ours ex/s':>10} {'gloo DDP':>10} {'ratio':>6}  losses, PyTorch's setting")
    try:
        subprocess.run([os.path.join(build, "trainyard"), "dataset", "make", "digits", os.path.join(folder, "digits"), "--train",
                        "4000", "--test", "100"], check=True, capture_output=True)
        for name in os.environ.get("MODELS", "mlp,cnn").split(","):
            line = measure(build, peers, folder, name)
            lines.append(line)
            print(f"{line['case']:32} {line['ours']:10.0f} {line.get('gloo_ddp', 0):10.0f} {line.get('ratio', 0):6.2f}  "
                  f"{line['ours_loss']} {line.get('gloo_ddp_loss', '-')} {line.get('setting', '')}", flush=True)
        os.makedirs(os.path.join(build, "bench"), exist_ok=True)
        with open(os.path.join(build, "bench", "allreduce.json"), "w") as file:
            json.dump(lines, file, indent=1)
    finally:
        shutil.rmtree(folder)
    if not peers:
        print("other frameworks: left out; make bench PEERS=FOLDER runs them too")


if __name__ == "__main__":
    if sys.argv[1] == "torch":
        run_torch(*sys.argv[2:])
    else:
        main()
