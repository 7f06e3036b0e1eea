"""Arrays of numpy and safetensors, both ways through `trainyard-task checkpoint`.

usage: arrays.py TRAINYARD_TASK WORK_FOLDER
"""
import json
import subprocess
import sys

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy
from numpy.lib import format as npy

task, work = sys.argv[1:3]
random = np.random.default_rng(5)
failed = []


def run(*words, code=0):
    done = subprocess.run([task, "checkpoint", *words], capture_output=True, text=True)
    if done.returncode != code:
        failed.append(f"{' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def same(what, got, wanted):
    if got.dtype != wanted.dtype or got.shape != wanted.shape or got.tobytes() != wanted.tobytes():
        failed.append(f"{what}: {got.dtype}{got.shape}, wanted {wanted.dtype}{wanted.shape}, or other values")


def values(dtype, shape):
    if dtype == "?":
        return random.random(shape) < 0.5
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(random.bytes(size), np.dtype(dtype)).reshape(shape)


# --- NPY: every type of numbers, orders of bytes and dimensions, versions ---
kinds = ["?"] + [order + kind for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16") for order in "<>"]
for i, kind in enumerate(kinds):
    for shape in ((), (7,), (0, 3), (2, 3, 4)):
        for order in "CF":
            array = np.array(values(kind, shape), order=order, copy=True)
            with open(f"{work}/in.npy", "wb") as file:
                npy.write_array(file, array, version=[(1, 0), (2, 0), (3, 0)][i % 3])
            run("export", f"{work}/in.npy", f"{work}/out.npy", "--force")
            wanted = np.ascontiguousarray(array).reshape(array.shape).astype(array.dtype.newbyteorder("<"))
            same(f"NPY {kind}{shape}{order}", np.load(f"{work}/out.npy"), wanted)
            np.save(f"{work}/own.npy", wanted)
            if open(f"{work}/own.npy", "rb").read() != open(f"{work}/out.npy", "rb").read():
                failed.append(f"NPY {kind}{shape}: not the bytes that numpy writes")
for array in (np.array(["a"]), np.array([b"a"]), np.array([(1, 2.0)], dtype="i4,f8"), np.array([1], "M8[s]"), np.array([None])):
    np.save(f"{work}/in.npy", array)
    run("show", f"{work}/in.npy", code=2)

# --- NPZ and safetensors ---
arrays = {f"part/{kind[-2:]}": values(kind, (3, 4)) for kind in kinds if kind[0] != ">" and kind not in ("<c8", "<c16")}
arrays |= {"empty": np.zeros((0, 5), "f4"), "scalar": np.array(2.5), "名前": np.arange(3, dtype="i8")}
np.savez(f"{work}/in.npz", **arrays)
np.savez_compressed(f"{work}/small.npz", **arrays)
safetensors.numpy.save_file(arrays, f"{work}/in.safetensors", metadata={"format": "np"})
for source in ("in.npz", "small.npz", "in.safetensors"):
    run("export", f"{work}/{source}", f"{work}/out.npz", "--force")
    run("export", f"{work}/{source}", f"{work}/out.safetensors", "--force")
    run("diff", f"{work}/{source}", f"{work}/out.npz")
    run("diff", f"{work}/in.npz", f"{work}/out.safetensors")
    with np.load(f"{work}/out.npz") as got:
        for name, wanted in arrays.items():
            same(f"{source} as NPZ: {name}", got[name], wanted)
    got = safetensors.numpy.load_file(f"{work}/out.safetensors")
    if sorted(got) != sorted(arrays):
        failed.append(f"{source} as safetensors has {sorted(got)}")
    for name, wanted in arrays.items():
        same(f"{source} as safetensors: {name}", got[name], wanted)

# --- types that numpy lacks ---
odd = {"bf": ("bfloat16", ml_dtypes.bfloat16), "e4": ("float8_e4m3fn", ml_dtypes.float8_e4m3fn), "e5": ("float8_e5m2", ml_dtypes.float8_e5m2)}
raw = {name: np.arange(24).astype(dtype).reshape(4, 6) for name, (_, dtype) in odd.items()}
safetensors.numpy.save_file(raw, f"{work}/odd.safetensors")
shown = {row["name"]: row for row in json.loads(run("show", f"{work}/odd.safetensors", "--json"))["tensors"]}
for name, array in raw.items():
    wide = array.astype("f8")
    row = shown[name]
    if row["dtype"] != odd[name][0] or [row["min"], row["max"]] != [wide.min(), wide.max()] or abs(row["mean"] - wide.mean()) > 1e-9:
        failed.append(f"{name} is shown as {row}")
told = run("export", f"{work}/odd.safetensors", f"{work}/odd.npz", "--force")
if "bf is written as uint16 with the bits of bfloat16" not in told:
    failed.append(f"nothing is told of bfloat16: {told}")
with np.load(f"{work}/odd.npz") as got:
    for name, array in raw.items():
        same(name, got[name], array.view("u2" if name == "bf" else "u1"))
run("export", f"{work}/odd.safetensors", f"{work}/again.safetensors", "--force")
for name, tensor in safetensors.deserialize(open(f"{work}/again.safetensors", "rb").read()):
    if bytes(tensor["data"]) != raw[name].tobytes() or list(tensor["shape"]) != [4, 6]:
        failed.append(f"{name} does not come back")

# --- what differs ---
close = {**arrays, "scalar": np.array(2.5 + 1e-7)}
np.savez(f"{work}/close.npz", **close)
run("diff", f"{work}/in.npz", f"{work}/close.npz", code=1)
run("diff", f"{work}/in.npz", f"{work}/close.npz", "--tolerance", "1e-6")

print("\n".join(failed[:20]) if failed else "ok")
sys.exit(bool(failed))
