"""events.py - the scalars of TensorFlow event files: what a test needs of them, without TensorFlow."""
import struct


def fields(message):
    """(number, value) of each field: an int, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}[key & 7] if key & 7 != 2 else varint()
        yield key >> 3, message[at : at + size]
        at += size


def records(path):
    """The whole records of a file; one that was broken off at the end is left out."""
    data, at = open(path, "rb").read(), 0
    while at + 12 <= len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        if at + 16 + size > len(data):
            return
        yield data[at + 12 : at + 12 + size]
        at += 16 + size


def scalars(path):
    """(tag, step, the value's four bytes) of each scalar, in the file's order."""
    for record in records(path):
        step, values = 0, []
        for number, value in fields(record):
            if number == 2:
                step = value
            elif number == 5:
                values += [dict(fields(v)) for n, v in fields(value) if n == 1]
        for value in values:
            if 2 in value:
                yield value[1].decode(), step, value[2]
