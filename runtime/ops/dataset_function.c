/* dataset_function.c - tf.data: datasets that call a function for their elements. */

#include "runtime/ops/internal.h"

/* Elements look as the attributes say. */
static bool infer_element(struct infer *infer, struct error *err)
{
    (void)err;
    const struct attr *shapes = node_attr(infer->node, "output_shapes");
    for (int i = 0; shapes && i < shapes->count && i < infer->node->outputs_count; i++)
        infer->outputs[i] = shapes->shapes[i];
    return true;
}

const struct op op_map_dataset = {
    .name = "MapDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments)",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 use_inter_op_parallelism:bool=true "
             "preserve_cardinality:bool=false force_synchronous:bool=false "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_parallel_map_dataset = {
    .name = "ParallelMapDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "num_parallel_calls:int32",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 use_inter_op_parallelism:bool=true "
             "sloppy:bool=false preserve_cardinality:bool=false metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_parallel_map_dataset_v2 = {
    .name = "ParallelMapDatasetV2",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "num_parallel_calls:int64",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 use_inter_op_parallelism:bool=true "
             "deterministic:string='default' preserve_cardinality:bool=false "
             "use_unbounded_threadpool:bool=false metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_map_and_batch_dataset = {
    .name = "MapAndBatchDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "batch_size:int64 num_parallel_calls:int64 drop_remainder:bool",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 preserve_cardinality:bool=false "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_filter_dataset = {
    .name = "FilterDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments)",
    .outputs = "handle:variant",
    .attrs = "predicate:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_parallel_filter_dataset = {
    .name = "ParallelFilterDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "num_parallel_calls:int64",
    .outputs = "handle:variant",
    .attrs = "predicate:func deterministic:string='default' Targuments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_take_while_dataset = {
    .name = "TakeWhileDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments)",
    .outputs = "handle:variant",
    .attrs = "predicate:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_scan_dataset = {
    .name = "ScanDataset",
    .inputs = "input_dataset:variant initial_state:list(Tstate) "
              "other_arguments:list(Targuments)",
    .outputs = "handle:variant",
    .attrs = "f:func Tstate:list(type)>=1 Targuments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "preserve_cardinality:bool=false use_default_device:bool=true "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_flat_map_dataset = {
    .name = "FlatMapDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments)",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_interleave_dataset = {
    .name = "InterleaveDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "cycle_length:int64 block_length:int64",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_parallel_interleave_dataset = {
    .name = "ParallelInterleaveDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "cycle_length:int64 block_length:int64 sloppy:bool "
              "buffer_output_elements:int64 prefetch_input_elements:int64",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_legacy_parallel_interleave_dataset_v2 = {
    .name = "LegacyParallelInterleaveDatasetV2",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "cycle_length:int64 block_length:int64 buffer_output_elements:int64 "
              "prefetch_input_elements:int64",
    .outputs = "handle:variant",
    .attrs = "f:func deterministic:string='default' Targuments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_parallel_interleave_dataset_v2 = {
    .name = "ParallelInterleaveDatasetV2",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "cycle_length:int64 block_length:int64 num_parallel_calls:int64",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 sloppy:bool=false metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_parallel_interleave_dataset_v3 = {
    .name = "ParallelInterleaveDatasetV3",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "cycle_length:int64 block_length:int64 num_parallel_calls:int64",
    .outputs = "handle:variant",
    .attrs = "f:func deterministic:string='default' Targuments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_parallel_interleave_dataset_v4 = {
    .name = "ParallelInterleaveDatasetV4",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "cycle_length:int64 block_length:int64 buffer_output_elements:int64 "
              "prefetch_input_elements:int64 num_parallel_calls:int64",
    .outputs = "handle:variant",
    .attrs = "f:func deterministic:string='default' Targuments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_generator_dataset = {
    .name = "GeneratorDataset",
    .inputs = "init_func_other_args:list(Tinit_func_args) "
              "next_func_other_args:list(Tnext_func_args) "
              "finalize_func_other_args:list(Tfinalize_func_args)",
    .outputs = "handle:variant",
    .attrs = "init_func:func next_func:func finalize_func:func "
             "Tinit_func_args:list(type)>=0 Tnext_func_args:list(type)>=0 "
             "Tfinalize_func_args:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_group_by_window_dataset = {
    .name = "GroupByWindowDataset",
    .inputs = "input_dataset:variant "
              "key_func_other_arguments:list(Tkey_func_other_arguments) "
              "reduce_func_other_arguments:list(Treduce_func_other_arguments) "
              "window_size_func_other_arguments:list(Twindow_size_func_other_arguments)",
    .outputs = "handle:variant",
    .attrs = "key_func:func reduce_func:func window_size_func:func "
             "Tkey_func_other_arguments:list(type)>=0 "
             "Treduce_func_other_arguments:list(type)>=0 "
             "Twindow_size_func_other_arguments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_group_by_reducer_dataset = {
    .name = "GroupByReducerDataset",
    .inputs = "input_dataset:variant "
              "key_func_other_arguments:list(Tkey_func_other_arguments) "
              "init_func_other_arguments:list(Tinit_func_other_arguments) "
              "reduce_func_other_arguments:list(Treduce_func_other_arguments) "
              "finalize_func_other_arguments:list(Tfinalize_func_other_arguments)",
    .outputs = "handle:variant",
    .attrs = "key_func:func init_func:func reduce_func:func finalize_func:func "
             "Tkey_func_other_arguments:list(type)>=0 "
             "Tinit_func_other_arguments:list(type)>=0 "
             "Treduce_func_other_arguments:list(type)>=0 "
             "Tfinalize_func_other_arguments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_reduce_dataset = {
    .name = "ReduceDataset",
    .inputs = "input_dataset:variant initial_state:list(Tstate) "
              "other_arguments:list(Targuments)",
    .outputs = "components:list(output_types)",
    .attrs = "f:func Tstate:list(type)>=1 Targuments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "use_inter_op_parallelism:bool=true metadata:string=''",
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = infer_element,
    .no_gradient = true,
};

const struct op op_experimental_group_by_reducer_dataset = {
    .name = "ExperimentalGroupByReducerDataset",
    .inputs = "input_dataset:variant "
              "key_func_other_arguments:list(Tkey_func_other_arguments) "
              "init_func_other_arguments:list(Tinit_func_other_arguments) "
              "reduce_func_other_arguments:list(Treduce_func_other_arguments) "
              "finalize_func_other_arguments:list(Tfinalize_func_other_arguments)",
    .outputs = "handle:variant",
    .attrs = "key_func:func init_func:func reduce_func:func finalize_func:func "
             "Tkey_func_other_arguments:list(type)>=0 "
             "Tinit_func_other_arguments:list(type)>=0 "
             "Treduce_func_other_arguments:list(type)>=0 "
             "Tfinalize_func_other_arguments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_group_by_window_dataset = {
    .name = "ExperimentalGroupByWindowDataset",
    .inputs = "input_dataset:variant "
              "key_func_other_arguments:list(Tkey_func_other_arguments) "
              "reduce_func_other_arguments:list(Treduce_func_other_arguments) "
              "window_size_func_other_arguments:list(Twindow_size_func_other_arguments)",
    .outputs = "handle:variant",
    .attrs = "key_func:func reduce_func:func window_size_func:func "
             "Tkey_func_other_arguments:list(type)>=0 "
             "Treduce_func_other_arguments:list(type)>=0 "
             "Twindow_size_func_other_arguments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_map_and_batch_dataset = {
    .name = "ExperimentalMapAndBatchDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "batch_size:int64 num_parallel_calls:int64 drop_remainder:bool",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 preserve_cardinality:bool=false",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_map_dataset = {
    .name = "ExperimentalMapDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments)",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 use_inter_op_parallelism:bool=true "
             "preserve_cardinality:bool=false force_synchronous:bool=false",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_parallel_interleave_dataset = {
    .name = "ExperimentalParallelInterleaveDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments) "
              "cycle_length:int64 block_length:int64 sloppy:bool "
              "buffer_output_elements:int64 prefetch_input_elements:int64",
    .outputs = "handle:variant",
    .attrs = "f:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_scan_dataset = {
    .name = "ExperimentalScanDataset",
    .inputs = "input_dataset:variant initial_state:list(Tstate) "
              "other_arguments:list(Targuments)",
    .outputs = "handle:variant",
    .attrs = "f:func Tstate:list(type)>=1 Targuments:list(type)>=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "preserve_cardinality:bool=false",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_take_while_dataset = {
    .name = "ExperimentalTakeWhileDataset",
    .inputs = "input_dataset:variant other_arguments:list(Targuments)",
    .outputs = "handle:variant",
    .attrs = "predicate:func Targuments:list(type)>=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};
