"""ops_keep.py - keeps cases that once differed from TensorFlow, to be run where it is not installed.

    ops_keep.py CASES.tfrecord NAME [NAME ...]

Appends them to recorded.tfrecord beside this file, which tests/interop/cases_test.sh runs.  Made by
ops_generate.py, named as build/tf-cases prints them.
"""

import os
import struct
import sys

from ops_case import case_class

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded.tfrecord")


def records(path):
    """(bytes of the message, bytes of the whole record) of each."""
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        size, = struct.unpack_from("<Q", data, at)
        yield data[at + 12:at + 12 + size], data[at:at + 16 + size]
        at += 16 + size


def main():
    Case, names = case_class(), set(sys.argv[2:])
    with open(RECORDED, "ab") as out:
        for message, record in records(sys.argv[1]):
            name = Case.FromString(message).name
            if name in names:
                out.write(record)
                names.remove(name)
    for name in sorted(names):
        sys.exit(f"no case is named {name}")


if __name__ == "__main__":
    main()
