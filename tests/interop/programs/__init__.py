"""Random programs with state, by family: functions of a Program that draw one.

What TensorFlow leaves open, does by chance or does wrong is not drawn; the reason stands where it
would be.  In short:

- a scatter into a scalar behind a handle, and updates of another shape than the rows: it reads
  what lies behind them;
- ResourceGather with batch_dims and an index out of range: it looks into the next batch;
- a variable read through a handle of another type: it aborts;
- a Merge of two live values, and operations without an order between them: by chance;
- a lowered If with a condition that is no bool: it fails to build its Switch;
- an import into a dense table of what no dense table exported: it believes that they are buckets;
- TensorListSplit with a number of rows in element_shape: it is not compared with the items', and
  who reads them reads so many rows;
- random numbers in what map_and_batch or a parallel map calls: they call several at once;
- blocks of more than one in parallel_interleave: whether one that is broken off counts for the next
  hangs on whether that has an element ready;
- a shuffle repeated no times: it makes one dataset of both, which it then refuses;
- a tensor kept by GetSessionHandle and used in the same run: it is there from the next run on;
- a barrier's values of a wrong shape: it takes them;
- types without a kernel of TensorFlow's: ours may have one, so the program ends before them.

To add a family: a function here that draws actions from a Program and runs them (program.py).
"""

from programs import (accumulators, arrays, data, examples, files, flow, optimizers, queues, random_ops, tables,
                      training, variables)

FAMILIES = {
    "variables": variables.program,
    "optimizers": optimizers.program,
    "queues": queues.program,
    "barriers": queues.barriers,
    "stages": queues.stages,
    "mutexes": queues.mutexes,
    "sparse_maps": queues.sparse_maps,
    "accumulators": accumulators.program,
    "stacks": arrays.stacks,
    "tensor_arrays": arrays.tensor_arrays,
    "array_gradients": arrays.array_gradients,
    "tensor_lists": arrays.tensor_lists,
    "tables": tables.program,
    "file_tables": tables.from_file,
    "session_tensors": tables.session_tensors,
    "readers": files.readers,
    "files": files.plain,
    "event_files": files.event_files,
    "examples": examples.parsed,
    "ragged_variants": examples.variants,
    "checkpoints": files.checkpoints,
    "loops": flow.first_form,
    "functional_loops": flow.functional_form,
    "switches": flow.switches,
    "references": flow.references,
    "functions": flow.functions,
    "random": random_ops.program,
    "generators": random_ops.generators,
    "data": data.program,
    "training": training.program,
}
