#!/usr/bin/env python3
"""allreduce.py BUILD [PEERS] - all-reduce training of 2 workers with a thread each on this machine.

Prints a line of JSON for each model: examples a second of ours (strategy allreduce), of PyTorch's DistributedDataParallel
over gloo (PEERS/bin/python, where that is there) in the same rounds and turns, the ratio of the medians, and the loss at the
end, which says that both learn.  ROUNDS=3 STEPS=200 MODELS=mlp,cnn

  allreduce.py torch MODEL STEPS    what PEERS/bin/python runs
"""
import json, os, shutil, statistics, subprocess, sys, tempfile, time

WORKERS, BATCH, RATE = 2, 100, 0.05  # a batch for each worker
MODELS = {
    "mlp": [{"layer": "Flatten"}, {"layer": "Dense", "units": 512, "activation": "relu"},
            {"layer": "Dense", "units": 512, "activation": "relu"}, {"layer": "Dense", "units": 10}],
    "cnn": [{"layer": "Conv2D", "filters": 32, "kernel_size": 5, "padding": "same", "activation": "relu"},
            {"layer": "MaxPooling2D", "pool_size": 2},
            {"layer": "Conv2D", "filters": 64, "kernel_size": 5, "padding": "same", "activation": "relu"},
            {"layer": "MaxPooling2D", "pool_size": 2}, {"layer": "Flatten"},
            {"layer": "Dense", "units": 512, "activation": "relu"}, {"layer": "Dense", "units": 10}],
}


# --- PyTorch's side ---

def torch_model(name):
    import torch.nn as nn
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 5, padding=2),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 10))


def torch_worker(rank, name, steps, store):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=WORKERS)
    model = torch.nn.parallel.DistributedDataParallel(torch_model(name), gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, fused=True)
    lossf = torch.nn.CrossEntropyLoss()
    labels = torch.randint(0, 10, (20 * BATCH,), generator=torch.Generator().manual_seed(rank))
    images = torch.rand(20 * BATCH, 1, 28, 28) * 0.2 + labels.view(-1, 1, 1, 1) * 0.08
    for step in range(steps + 10):
        if step == 10:
            dist.barrier()
            start = time.perf_counter()
        at = step % 20 * BATCH
        optimizer.zero_grad(set_to_none=True)
        loss = lossf(model(images[at:at + BATCH]), labels[at:at + BATCH])
        loss.backward()
        optimizer.step()
    dist.barrier()
    if rank == 0:
        seconds = time.perf_counter() - start
        print(json.dumps({"examples_per_second": WORKERS * BATCH * steps / seconds, "loss": loss.item()}), flush=True)
    dist.destroy_process_group()


def run_torch(name, steps):
    import torch.multiprocessing as mp
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(torch_worker, (name, steps, os.path.join(folder, "store")), nprocs=WORKERS)


# --- both ---

def last_line(words, cwd=None):
    out = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=cwd,
                         env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"})  # platform.py, beside this, is not Python's
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout.strip().splitlines()[-1])


def ours(build, folder, name, steps):
    spec = {"model": {"layers": MODELS[name]}, "data": {"dataset": "digits", "batch_size": BATCH},
            "train": {"steps": steps, "eval_every": 0, "optimizer": {"name": "SGD", "learning_rate": RATE}},
            "strategy": {"mode": "allreduce"}, "tasks": {"worker": WORKERS}}
    path = os.path.join(folder, name + ".json")
    with open(path, "w") as file:
        json.dump(spec, file)
    end = last_line([os.path.join(build, "trainyard"), "train", path, "--data", os.path.join(folder, "digits"), "--threads", "1",
                     "--json"], folder)
    return {"examples_per_second": end["examples_per_second"], "loss": end["metrics"]["loss"]}


def main():
    build = os.path.realpath(sys.argv[1])
    peer = os.path.join(sys.argv[2], "bin/python") if len(sys.argv) > 2 else None
    rounds, steps = int(os.environ.get("ROUNDS", 3)), int(os.environ.get("STEPS", 200))
    folder = tempfile.mkdtemp(prefix="trainyard-bench-")
    try:
        last = [os.path.join(build, "trainyard"), "dataset", "make", "digits", os.path.join(folder, "digits"), "--train", "4000",
                "--test", "100"]
        subprocess.run(last, check=True, capture_output=True)
        for name in os.environ.get("MODELS", "mlp,cnn").split(","):
            mine, theirs = [], []
            for _ in range(rounds):
                mine.append(ours(build, folder, name, steps))
                if peer and os.access(peer, os.X_OK):
                    theirs.append(last_line([peer, os.path.realpath(__file__), "torch", name, str(steps)]))
            line = {"case": "allreduce " + name, "workers": WORKERS, "steps": steps, "rounds": rounds}
            for who, runs in (("ours", mine), ("gloo_ddp", theirs)):
                if runs:
                    line[who] = round(statistics.median(r["examples_per_second"] for r in runs), 1)
                    line[who + "_all"] = [round(r["examples_per_second"], 1) for r in runs]
                    line[who + "_loss"] = round(runs[-1]["loss"], 4)
            if theirs:
                line["ratio"] = round(line["ours"] / line["gloo_ddp"], 3)
            print(json.dumps(line), flush=True)
        if not peer:
            print("other frameworks: left out; make bench PEERS=FOLDER runs them too")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    if sys.argv[1] == "torch":
        run_torch(sys.argv[2], int(sys.argv[3]))
    else:
        main()
