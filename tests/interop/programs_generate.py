"""programs_generate.py - random programs of several runs each, with TensorFlow's answers.

    programs_generate.py FOLDER --seed 1 --count 500 [--only FAMILY[,FAMILY]]

Writes FOLDER/FAMILY.tfrecord: serialised Cases (case.proto) for build/tf-cases.  The families
are those of programs/.  Equal seeds give equal cases.  Prints how many programs and runs each
family has.
"""

import argparse
import collections
import os
import shutil
import signal
import sys
import tempfile

import numpy as np

import ops_case
import ops_generate
from programs import FAMILIES
from programs.program import Program

PATIENCE = 30  # seconds for one program


def make_case(Case, family, number, seed):
    rng = np.random.default_rng([seed, number])
    case = Case(name=f"{family}/{seed}-{number}")
    folder = tempfile.mkdtemp()
    try:
        program = Program(case, rng, folder)
        with program.graph.as_default():
            FAMILIES[family](program)
            program.finish()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return case.SerializeToString() if case.run or case.gradient else b""


def in_children(make, count):
    """(number, bytes, error) of each.  TensorFlow may crash or hang: a new child goes on behind."""
    number = 0
    while number < count:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            with os.fdopen(writer, "wb") as pipe:
                for i in range(number, count):
                    signal.alarm(PATIENCE)
                    try:
                        data, error = make(i), b""
                    except Exception as trouble:  # it asked for what cannot be built
                        data, error = b"", f"{type(trouble).__name__}: {trouble}".encode()[:300]
                    for part in (data, error):
                        pipe.write(len(part).to_bytes(8, "little") + part)
                    pipe.flush()
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            while (data := ops_generate.read_part(pipe)) is not None:
                error = ops_generate.read_part(pipe)
                if error is None:
                    break
                yield number, data, error.decode(errors="replace")
                number += 1
        os.waitpid(child, 0)
        if number < count:
            yield number, b"", "TensorFlow crashed or hung"
            number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--only", default="", help="families, separated by commas")
    options = parser.parse_args()
    wanted = set(filter(None, options.only.split(",")))
    families = [name for name in FAMILIES if not wanted or name in wanted]
    if not families:
        sys.exit(f"no family is named {options.only}")
    Case = ops_case.case_class()
    programs, runs, failing, refused = (collections.Counter() for _ in range(4))
    ops = set()

    def one(number):
        return make_case(Case, families[number % len(families)], number, options.seed)
    made = {family: [] for family in families}
    for number, data, error in in_children(one, options.count):
        family = families[number % len(families)]
        if error:
            refused[family, error] += 1
        elif data:
            made[family].append(data)
            case = Case.FromString(data)
            programs[family] += 1
            runs[family] += len(case.run)
            failing[family] += sum(run.error_code != 0 for run in case.run)
            ops.update(case.op)
    ops_generate.write(options.folder, made)
    for (family, error), count in sorted(refused.items()):
        print(f"not built: {family} ({count}): {error[:200]}", file=sys.stderr)
    for family in families:
        print(f"{family}: {programs[family]} programs, {runs[family]} runs, "
              f"{failing[family]} of them fail", file=sys.stderr)
    print("ops: " + " ".join(sorted(ops)), file=sys.stderr)


if __name__ == "__main__":
    main()
