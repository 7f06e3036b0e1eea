"""ops_generate.py - random graphs with TensorFlow's answers, from the tables in ops/.

    ops_generate.py FOLDER --seed 1 --count 500 [--only NAME[,NAME]]
    ops_generate.py --cover OPS.txt

The first writes FOLDER/FAMILY.tfrecord: serialised Cases (case.proto) for build/tf-cases, each
with what TensorFlow answers or with which code it fails, and now and then its gradients.  Names
are those of families, rows and ops.  Equal seeds give equal cases.  The second prints which ops
of the list (build/tf-cases --ops) no row is about, and fails if there are any.
"""

import argparse
import os
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


def generate(options):
    rows = [pair for pair in ops.chosen(set(filter(None, options.only.split(","))))
            for _ in range(pair[1].weight)]
    if not rows:
        sys.exit(f"no family, row or op is named {options.only}")
    os.makedirs(options.folder, exist_ok=True)
    writers = {family: tf.io.TFRecordWriter(os.path.join(options.folder, family + ".tfrecord"))
               for family, _ in rows}
    refused = {}
    for number, case, error in cases(ops_case.case_class(), rows, options):
        family, row = rows[(number + options.seed) % len(rows)]
        if error:
            refused.setdefault(row.name, []).append(error)
        else:
            writers[family].write(case)
    for writer in writers.values():
        writer.close()
    for name, errors in sorted(refused.items()):
        print(f"not built: {name} ({len(errors)}): {errors[0][:160]}", file=sys.stderr)


def cover(path):
    """What is wrong with the tables, compared to the ops that there are; 0 if nothing."""
    with open(path, encoding="ascii") as file:
        known = {line.split()[0] for line in file if line.strip()}
    covered = ops.covered()
    wrong = [f"no row: {op}" for op in sorted(known - covered) if ops.needs_row(op)]
    wrong += [f"a row, and a reason for none: {op}" for op in sorted(covered & set(ops.UNCOVERED))]
    print("\n".join(wrong + [f"{len(known & covered)} of {len(known)} ops have rows, "
                             f"{len(ops.UNCOVERED)} a reason for none, {len(wrong)} are wrong"]))
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", default="", help="families, rows or ops, between commas")
    parser.add_argument("--cover", help="a file with the names of ops, one a line")
    options = parser.parse_args()
    if options.cover:
        sys.exit(cover(options.cover))
    if not options.folder:
        parser.error("a folder, or --cover")
    generate(options)


if __name__ == "__main__":
    main()
