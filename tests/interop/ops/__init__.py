"""ops - what ops_generate.py makes of each operation: one file for each family of them.

To add an op to the comparison with TensorFlow, add a Row to ROWS in the file of its family:

    Row("Softplus", FLOAT, unary("features"), "few"),

- the name in TensorFlow's registry;
- the types that its first type attribute may have, as TensorFlow's CPU kernels have them;
- a function of a Source (frame.py) that returns the arguments of tf.raw_ops.Softplus: arrays are
  inputs, all else attributes.  Draw everything from the Source: equal seeds give equal cases;
- how exact the answer is (frame.py).

What has state, or needs several operations or runs, is a Story (frame.py).  A new family is a
new file here with a ROWS of its own; nothing else has to know.

    ops_fuzz.sh PYTHON build 1 100 Softplus     # by name of op, story or family
    ops_generate.py --cover OPS.txt             # OPS.txt from build/tf-cases --ops: what is not covered

What programs/ draw is in programs/ops.txt; an op that a family is made to draw is added there.
"""

import importlib
import pkgutil

FAMILIES = {}
for _module in pkgutil.iter_modules(__path__):
    _rows = getattr(importlib.import_module(f"{__name__}.{_module.name}"), "ROWS", None)
    if _rows is not None:
        FAMILIES[_module.name] = _rows

# Ops without a row, and why.
UNCOVERED = {
    **dict.fromkeys(("PlaceholderV2", "AudioSummary", "Conv3DBackpropFilter",
                     "Conv3DBackpropInput", "RandomCrop", "RandomPoisson"),
                    "TensorFlow has taken it out of graphs of today's version"),
    "Abort": "ends the process",
    **dict.fromkeys(("PyFunc", "PyFuncStateless", "EagerPyFunc"),
                    "a function that only its client's process has: a session says so"),
    **dict.fromkeys(("CollectiveAssignGroupV2", "CollectiveBcastRecv", "CollectiveBcastRecvV2",
                     "CollectiveBcastSend", "CollectiveBcastSendV2", "CollectiveGather",
                     "CollectiveGatherV2", "CollectiveReduce", "CollectiveReduceV2"),
                    "several devices or tasks meet in it: collectives.py has them"),
    **dict.fromkeys(("BatchCholesky", "BatchCholeskyGrad", "BatchMatrixDeterminant",
                     "BatchMatrixInverse", "BatchMatrixSolve", "BatchMatrixSolveLs",
                     "BatchMatrixTriangularSolve", "BatchSelfAdjointEig", "BatchSelfAdjointEigV2",
                     "BatchSvd", "SelfAdjointEig", "TopK", "QuantizeAndDequantize", "StackGrad"),
                    "an older name of what has a row, taken out of graphs of today's version"),
    **dict.fromkeys(("FixedLengthRecordReader", "IdentityReader", "InitializeTableFromTextFile",
                     "MutableDenseHashTable", "ReaderNumRecordsProduced",
                     "ReaderNumWorkUnitsCompleted", "ReaderRead", "ReaderReadUpTo", "ReaderReset",
                     "ReaderRestoreState", "ReaderSerializeState", "RefIdentity", "RefSelect",
                     "TFRecordReader", "TextLineReader", "WholeFileReader"),
                    "by reference what programs draw by handle: the kernel is the same"),
    **dict.fromkeys(("Empty", "NonDeterministicInts", "FakeParam"), "values that are left open"),
    **dict.fromkeys(("DisableCopyOnRead", "RemoteCall", "SymbolicGradient", "MatrixExponential"),
                    "made by TensorFlow's own rewriting, or by nothing any more"),
    **dict.fromkeys(("GetSessionHandleV2", "ScatterNdNonAliasingAdd",
                     "TensorArrayGradWithShape", "TensorListConcat", "TensorListPushBackBatch",
                     "TensorListScatter"),
                    "no program draws them: the recorded cases and those of the kernel's other name do"),
    **dict.fromkeys(("ReaderRestoreStateV2", "ReaderSerializeStateV2"),
                    "a state is text for the reader that gave it alone"),
}

# Recorded cases and tests/interop/data_cases.py have these; a random program does not draw them.
FIXED = ("Dataset", "Iterator", "Anonymous", "SeedGenerator", "MemoryCache", "Dummy", "Optional")


def chosen(names):
    """[(family, row)] in order: all, or those whose family, name or op is among the names."""
    return [(family, row) for family, rows in FAMILIES.items() for row in rows
            if not names or family in names or row.name in names or set(row.ops) & set(names)]


def needs_row(op):
    """Ops of our optimiser stand in no graph of TensorFlow's: the optimised runs make them."""
    return (op not in UNCOVERED and not op.startswith("_")
            and not any(word in op for word in FIXED))


def covered():
    """Names of all ops that some row is about."""
    return {op for rows in FAMILIES.values() for row in rows for op in row.ops}
