"""files.py - files written, read by readers, saved into and restored from checkpoints."""

import numpy as np
import tensorflow as tf

from programs.program import raw

TYPES = "float32 float64 int32 int64 string bool uint8 half bfloat16 complex64 int8 int16"


def scalar(text):
    return np.array(text, object)


def readers(p):
    """A reader of each kind on files with odd ends."""
    names = ["a", "b", "c"][:p.int(1, 3)]
    kind = p.pick("TextLine", "FixedLengthRecord", "WholeFile", "Identity")
    for name in names:
        text = b"\n".join(p.string(0, 6) for _ in range(p.int(0, 4))) + p.pick(b"", b"\n", b"\r\n")
        path = p.path(name)
        p.run(target=[raw.WriteFile(filename=path, contents=p.give(scalar(text)))])
    more = {}
    if kind == "TextLine":
        more["skip_header_lines"] = p.pick(0, 0, 1, 2)
    if kind == "FixedLengthRecord":
        more.update(record_bytes=p.int(1, 4), header_bytes=p.int(0, 2), footer_bytes=p.int(0, 2),
                    hop_bytes=p.pick(0, 0, 1, 3))
    reader = getattr(raw, kind + "ReaderV2")(**more)
    queue = raw.FIFOQueueV2(component_types=[tf.string], shapes=[[]], capacity=9)

    def path(name):
        return p.path(name) if p.chance(0.95) else p.path("none")
    for name in names:
        p.run(target=[raw.QueueEnqueueV2(handle=queue, components=[path(name)])])
    p.run(target=[raw.QueueCloseV2(handle=queue)])

    def read():
        p.run([raw.ReaderReadV2(reader_handle=reader, queue_handle=queue)])

    def read_up_to():
        p.run([raw.ReaderReadUpToV2(reader_handle=reader, queue_handle=queue,
                                    num_records=p.give(np.int64(p.int(1, 4))))])

    def count():
        p.run([raw.ReaderNumRecordsProducedV2(reader_handle=reader),
               raw.ReaderNumWorkUnitsCompletedV2(reader_handle=reader)])

    def reset():
        if p.chance(0.2):
            p.run(target=[raw.ReaderResetV2(reader_handle=reader)])
    p.actions([read, read, read, read_up_to, read_up_to, count, reset], 4, 12)


def event_files(p):
    """Summaries written into an event file, which a reader takes apart: all of a record but its
    time, which comes first."""
    writer = raw.SummaryWriter(shared_name=p.pick("", "one", "two"))
    steps, tags = (0, 1, 7, 2**40), (b"", b"loss", b"a/b", b"\xc3\xa4")

    def where():
        return {"writer": writer, "step": p.give(np.int64(p.pick(*steps)))}

    def tag():
        return p.give(scalar(p.pick(*tags)))

    def create():
        folder = p.path(p.pick("log", "log", "log/deep/er", "file"))
        p.run(target=[raw.CreateSummaryFileWriter(
            writer=writer, logdir=folder, max_queue=p.pick(0, 10), flush_millis=p.pick(0, 120000),
            filename_suffix=p.pick(".v2", "x", ""))])

    def numbers():
        dtype = p.dtype("float32 float64 half bfloat16 int32 int64 uint8 int8 int16 uint16")
        p.run(target=[raw.WriteScalarSummary(
            **where(), tag=tag(), value=p.give(p.values((), -9, 9, dtype)))])

    def histogram():
        dtype = p.dtype("float32 float64 half int32 int64 uint8")
        values = p.values(p.shape(0, 3, 4), -9, 9, dtype)
        if p.chance(0.1) and dtype.is_floating and values.size:
            values.flat[0] = p.pick(np.nan, np.inf)
        p.run(target=[raw.WriteHistogramSummary(**where(), tag=tag(), values=p.give(values))])

    def sound():
        values = p.values((p.int(0, 3), p.int(0, 5), p.int(1, 2)), -2, 2, tf.float32)
        p.run(target=[raw.WriteAudioSummary(
            **where(), tag=tag(), tensor=p.give(values), max_outputs=p.int(1, 3),
            sample_rate=p.give(np.float32(p.pick(8000, 44100))))])

    def pictures():
        """Written last: their bytes hang on the packer."""
        dtype = p.dtype("uint8 half float32")
        values = p.values((p.int(1, 2), 2, 3, p.pick(1, 2, 3, 4)), 0, 9, dtype)
        p.run(target=[raw.WriteImageSummary(
            **where(), tag=tag(), tensor=p.give(values), max_images=p.int(1, 3),
            bad_color=p.give(np.array([255, 0, 0, 255][:p.pick(1, 3, 4, 4)], np.uint8)))])

    def tensor():
        dtype = p.dtype(TYPES)
        metadata = p.pick(b"", b"", b"\n\x09\n\x07scalars", b"\xff")
        p.run(target=[raw.WriteSummary(
            **where(), tensor=p.give(p.values(p.shape(0, 3, 3), -9, 9, dtype)), tag=tag(),
            summary_metadata=p.give(scalar(metadata)))])

    def serialized():
        one = tf.raw_ops.ScalarSummary(tags=["x", "y"], values=[1.0, p.int(0, 5)])
        p.run(target=[raw.WriteRawProtoSummary(
            **where(), tensor=p.pick(one, [one, one], p.give(scalar(b"\xff"))))])

    def graph():
        text = p.pick(b"", b'"\x02\x08\x08', b"\xff", b"\n\x03\n\x01a")
        p.run(target=[raw.WriteGraphSummary(**where(), tensor=p.give(scalar(text)))])

    def event():
        text = p.pick(b"\x10\x05", b"", b"\xff", b"\x10\x05*\x0a\n\x08\n\x01a\x15\0\0\x80?")
        p.run(target=[raw.ImportEvent(writer=writer, event=p.give(scalar(text)))])

    def flush():
        p.run(target=[raw.FlushSummaryWriter(writer=writer)])

    def close():
        if p.chance(0.3):
            p.run(target=[raw.CloseSummaryWriter(writer=writer)])
    p.run(target=[raw.WriteFile(filename=p.path("file"), contents=p.give(scalar(b"")))])
    if p.chance(0.9):
        create()
    p.actions([numbers, numbers, histogram, sound, tensor, tensor, serialized, graph, event, flush,
               close, create], 4, 14)
    flush()
    files = raw.MatchingFiles(pattern=p.path("log/events*"))
    queue = raw.FIFOQueueV2(component_types=[tf.string], shapes=[[]], capacity=20)
    reader = raw.TFRecordReaderV2()
    p.run([tf.shape(files)], [raw.QueueEnqueueManyV2(handle=queue, components=[files])])
    p.run(target=[raw.QueueCloseV2(handle=queue)])
    for _ in range(16):
        _, record = raw.ReaderReadV2(reader_handle=reader, queue_handle=queue)
        said = raw.Substr(input=record, pos=p.give(np.int32(9), 1), len=p.give(np.int32(10**6), 1))
        first = tf.strings.regex_full_match(said, "(?s).*brain.Event:2.*")
        p.run([tf.where(first, "who wrote it", said)])
    pictures()


def plain(p):
    """Files written, read and matched."""
    def some():
        return p.path(p.pick("a", "b.txt", "sub/c", "b2.txt"))

    def write():
        p.run(target=[raw.WriteFile(filename=some(), contents=p.give(scalar(p.string(0, 9))))])

    def read():
        p.run([raw.ReadFile(filename=some())])

    def match():
        p.run([raw.MatchingFiles(pattern=p.path(p.pick("*", "b*", "?", "*.txt", "sub/*", "[ab]*", "none*")))])

    def sharded():
        p.run([raw.ShardedFilename(basename=some(), shard=p.give(np.int32(p.int(0, 3))),
                                   num_shards=p.give(np.int32(p.int(0, 4))))])
    p.actions([write, write, write, read, read, match, sharded], 4, 10)


def checkpoints(p):
    """Saved in both formats, merged, restored whole and in slices."""
    count = p.int(1, 4)
    old = p.chance(0.3)
    types = [p.dtype("float32 float64 int32 int64 uint8 int8 int16" if old else TYPES) for _ in range(count)]
    shapes = [p.shape(0, 3, 4, 1) for _ in types]
    names = [f"v{i}" for i in range(count)]

    def slices(i):
        """A part of the i-th tensor as text."""
        if not shapes[i] or types[i] == tf.half or p.chance(0.6):  # no slices of half in TensorFlow
            return b"", shapes[i]
        parts, sizes = [], []
        for d in shapes[i]:
            first = p.int(0, d - 1)
            length = p.int(1, d - first)
            whole = p.flag()
            parts.append("-" if whole else f"{first},{length}")
            sizes.append(d if whole else length)
        text = " ".join(map(str, shapes[i])) + " " + ":".join(parts)
        return text.encode(), tuple(sizes)

    def strings(items):
        return p.give(np.array(items, object))

    def save(prefix):
        spec = [slices(i) if p.chance(0.3) else (b"", shapes[i]) for i in range(count)]
        values = [p.give(p.values(size, -9, 9, dtype)) for (_, size), dtype in zip(spec, types)]
        if old:
            if any(text for text, _ in spec):
                op = raw.SaveSlices(filename=p.path(prefix), tensor_names=strings([n.encode() for n in names]),
                                    shapes_and_slices=strings([text for text, _ in spec]), data=values)
            else:
                op = raw.Save(filename=p.path(prefix), tensor_names=strings([n.encode() for n in names]),
                              data=values)
        else:
            op = raw.SaveV2(prefix=p.path(prefix), tensor_names=strings([n.encode() for n in names]),
                            shape_and_slices=strings([text for text, _ in spec]), tensors=values)
        p.run(target=[op])

    def restore(prefix):
        some = [p.int(0, count - 1) for _ in range(p.int(1, 3))]
        asked = [(names[i] if p.chance(0.95) else "none").encode() for i in some]
        wanted = [types[i] if p.chance(0.95) else tf.int32 for i in some]
        spec = [slices(i)[0] if p.chance(0.4) else b"" for i in some]
        if old:
            p.run([raw.RestoreSlice(file_pattern=p.path(prefix), tensor_name=p.give(scalar(asked[0])),
                                    shape_and_slice=p.give(scalar(spec[0])), dt=wanted[0])
                   if spec[0] else raw.Restore(file_pattern=p.path(prefix), tensor_name=p.give(scalar(asked[0])),
                                               dt=wanted[0])])
        else:
            p.run(raw.RestoreV2(prefix=p.path(prefix), tensor_names=strings(asked),
                                shape_and_slices=strings(spec), dtypes=wanted))

    def merge():
        if not old:
            p.run(target=[raw.MergeV2Checkpoints(
                checkpoint_prefixes=tf.stack([p.path("one"), p.path("two")][:p.int(1, 2)]),
                destination_prefix=p.path("all"), delete_old_dirs=p.flag())])
            for _ in range(2):
                p.attempt(lambda: restore("all"))
    p.attempt(lambda: save("one"))
    p.actions([lambda: save("one"), lambda: save("two"), lambda: restore("one"), lambda: restore("one"),
               lambda: restore("two"), merge], 3, 8)
