"""ctc.py - rows about connectionist temporal classification."""

import numpy as np

from .frame import Row


def frames(s, classes):
    """Logits and lengths; no two sums of them are the same, or decoders may choose freely."""
    steps, batch = s.int(1, 6), s.int(1, 3)
    lengths = [s.int(0, steps) if s.int(0, 3) else steps for _ in range(batch)]
    if s.int(0, 30) == 0:
        lengths[0] = s.pick(-1, steps + 1)
    values = s.rng.uniform(-3, 3, (steps, batch, classes)).astype(s.type.as_numpy_dtype)
    return {"inputs": values, "sequence_length": np.array(lengths, np.int32)}


def loss(s):
    classes = s.int(2, 5)
    out = frames(s, classes)
    steps, batch = out["inputs"].shape[:2]
    places, values = [], []
    for b in range(batch):
        count = s.int(1, max(1, min(4, out["sequence_length"][b]))) if s.int(0, 20) else s.int(0, steps + 1)
        for i in range(count):
            places.append([b, i])
            # TensorFlow writes where it may not when no label is left of an example.
            values.append(s.int(0, classes - 2) if s.int(0, 25) or not i else s.int(-1, classes))
    if places and s.int(0, 30) == 0:
        places[-1][s.int(0, 1)] = s.pick(-1, batch, 0)
    return {**out, "labels_indices": np.array(places, np.int64).reshape(-1, 2),
            "labels_values": np.array(values, np.int32),
            "preprocess_collapse_repeated": s.flag(), "ctc_merge_repeated": s.flag(),
            "ignore_longer_outputs_than_inputs": s.flag()}


def greedy(s):
    classes = s.int(1, 5)
    return {**frames(s, classes), "merge_repeated": s.flag(),
            "blank_index": s.pick(-1, -1, 0, s.int(-classes - 1, classes))}


def beam(s):
    width = s.int(1, 6)
    return {**frames(s, s.int(1, 5)), "beam_width": width,
            "top_paths": s.pick(1, 1, s.int(1, width + 1)), "merge_repeated": s.flag()}


TYPES = "float32 float64"
ROWS = [
    Row("CTCLoss", TYPES, loss, "single", spoil=False, terms=1.0),
    Row("CTCGreedyDecoder", TYPES, greedy, "sum"),
    Row("CTCBeamSearchDecoder", TYPES, beam, "single", terms=1.0),
]
