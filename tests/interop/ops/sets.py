"""sets.py - rows about the last dimension as sets."""

import numpy as np

from .frame import SIGNED, Row

TYPES = SIGNED + " uint8 uint16 string"


def members(s, shape):
    return s.values(shape, 0, 4) if s.type.is_integer else s.values(shape)


def sparse(s, groups, name):
    """A sparse tensor of those groups, its places in order."""
    shape = groups + (s.int(1, 4),)
    cells = int(np.prod(shape))
    chosen = np.sort(s.rng.choice(cells, size=s.int(0, cells), replace=False))
    places = np.stack(np.unravel_index(chosen, shape), -1).astype(np.int64)
    return {name + "_indices": places.reshape(-1, len(shape)),
            name + "_values": members(s, (len(chosen),)),
            name + "_shape": np.array(shape, np.int64)}


def operation(a_dense, b_dense):
    def make(s):
        groups = s.shape(1, 2, 3, least=1)
        part = lambda dense, name: ({name: members(s, groups + (s.int(1, 4),))} if dense else
                                    sparse(s, groups, name))
        return {**part(a_dense, "set1"), **part(b_dense, "set2"),
                "set_operation": s.pick("a-b", "b-a", "intersection", "union"),
                "validate_indices": s.flag()}
    return make


ROWS = [
    Row("DenseToDenseSetOperation", TYPES, operation(True, True)),
    Row("DenseToSparseSetOperation", TYPES, operation(True, False)),
    Row("SparseToSparseSetOperation", TYPES, operation(False, False)),
    Row("SetSize", TYPES, lambda s: {**sparse(s, s.shape(1, 2, 3, least=1), "set"),
                                     "validate_indices": s.flag()}),
]
