"""ops_generate.py - random graphs with TensorFlow's answers, from the tables in ops/.

    ops_generate.py FOLDER --seed 1 --count 500 [--only NAME[,NAME]]
    ops_generate.py --cover OPS.txt [--drawn DRAWN.txt] [--spec SPEC.md]

The first writes FOLDER/FAMILY.tfrecord: serialised Cases (case.proto) for build/tf-cases, each
with what TensorFlow answers or with which code it fails, and now and then its gradients.  Names
are those of families, rows and ops.  Equal seeds give equal cases.  The second prints which ops
of the list (build/tf-cases --ops), and of the first two tiers of SPEC.md, neither a row is about nor
a program draws (programs/ops.txt), and fails if there are any; and if DRAWN.txt, the ops of programs
that were drawn, has any that programs/ops.txt lacks.
"""

import argparse
import os
import re
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ops  # noqa: E402
import ops_case  # noqa: E402


def work(Case, rows, options, start, pipe):
    """Sends the cases from number `start` on: for each its size and bytes, or the error."""
    for number in range(start, options.count):
        family, row = rows[(number + options.seed) % len(rows)]
        rng = np.random.default_rng([options.seed, number])
        try:
            case, error = ops_case.make_case(
                Case, family, row, number, rng).SerializeToString(), b""
        except Exception as trouble:  # the row asked for what cannot be built
            case, error = b"", f"{type(trouble).__name__}: {trouble}".encode()[:300]
        pipe.write(len(case).to_bytes(8, "little") + case)
        pipe.write(len(error).to_bytes(8, "little") + error)
        pipe.flush()


def read_part(pipe):
    size = pipe.read(8)
    if len(size) < 8:
        return None
    part = pipe.read(int.from_bytes(size, "little"))
    return part if len(part) == int.from_bytes(size, "little") else None


def cases(Case, rows, options):
    """(number, case, error) in order.  TensorFlow may crash: then a new child goes on behind."""
    number = 0
    while number < options.count:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                work(Case, rows, options, number, pipe)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            while (case := read_part(pipe)) is not None:
                error = read_part(pipe)
                if error is None:
                    break
                yield number, case, error.decode(errors="replace")
                number += 1
        os.waitpid(child, 0)
        if number < options.count:
            yield number, b"", "TensorFlow crashed"
            number += 1


def write(folder, made):
    """FOLDER/FAMILY.tfrecord of each family's cases: last of all, because a child that crashes
    would write out what it inherits of a writer."""
    os.makedirs(folder, exist_ok=True)
    for family, records in made.items():
        with tf.io.TFRecordWriter(os.path.join(folder, family + ".tfrecord")) as writer:
            for record in records:
                writer.write(record)


def generate(options):
    rows = [pair for pair in ops.chosen(set(filter(None, options.only.split(","))))
            for _ in range(pair[1].weight)]
    if not rows:
        sys.exit(f"no family, row or op is named {options.only}")
    made = {family: [] for family, _ in rows}
    refused = {}
    for number, case, error in cases(ops_case.case_class(), rows, options):
        family, row = rows[(number + options.seed) % len(rows)]
        if error:
            refused.setdefault(row.name, []).append(error)
        else:
            made[family].append(case)
    write(options.folder, made)
    for name, errors in sorted(refused.items()):
        print(f"not built: {name} ({len(errors)}): {errors[0][:160]}", file=sys.stderr)


def words(path):
    with open(path, encoding="ascii") as file:
        return {line.split()[0] for line in file if line.strip()}


def first_tiers(path):
    """The ops that the tables of that document put into tier 1 or 2."""
    with open(path, encoding="utf-8") as file:
        cells = [line.split("|")[2] for line in file if line.startswith(("| 1 |", "| 2 |"))]
    return {op for cell in cells for op in re.findall("`([A-Za-z0-9_]+)`", cell)}


def cover(options):
    """What is wrong with the tables, compared to the ops that there are; 0 if nothing."""
    known, rows = words(options.cover), ops.covered()
    programs = words(os.path.join(os.path.dirname(ops.__file__), "..", "programs", "ops.txt"))
    tiers = first_tiers(options.spec) if options.spec else set()
    drawn = words(options.drawn) if options.drawn else set()
    covered = rows | programs
    wrong = [f"neither a row nor a program: {op}" for op in sorted((known | tiers) - covered)
             if ops.needs_row(op)]
    wrong += [f"a reason for none, but there is one: {op}" for op in sorted(covered & set(ops.UNCOVERED))]
    wrong += [f"not in programs/ops.txt: {op}" for op in sorted((drawn & known) - programs)]
    wrong += [f"no op, but in programs/ops.txt: {op}" for op in sorted(programs - known)]
    print(f"{len(known & rows)} of {len(known)} ops have rows, {len(programs - rows)} are in programs, "
          f"{len(ops.UNCOVERED)} have a reason for neither, {len(tiers)} are of tiers 1 and 2, "
          f"{len(wrong)} are wrong")
    if wrong:
        print("; ".join(wrong))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", default="", help="families, rows or ops, between commas")
    parser.add_argument("--cover", help="a file with the names of ops, one a line")
    parser.add_argument("--drawn", help="another one, of the ops of programs that were drawn")
    parser.add_argument("--spec", help="a document whose tables give ops their tiers")
    options = parser.parse_args()
    if options.cover:
        sys.exit(cover(options))
    if not options.folder:
        parser.error("a folder, or --cover")
    generate(options)


if __name__ == "__main__":
    main()
