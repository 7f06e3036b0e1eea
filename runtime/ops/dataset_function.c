/* dataset_function.c - tf.data: datasets that call a function for their elements. */

#include "runtime/ops/dataset.h"

const struct op op_map_dataset =
    OP_DATASET("MapDataset", "input_dataset:variant other_arguments:list(Targuments)",
               "f:func Targuments:list(type)>=0 " OP_ELEMENTS
               " use_inter_op_parallelism:bool=true preserve_cardinality:bool=false "
               "force_synchronous:bool=false " OP_METADATA);

const struct op op_parallel_map_dataset =
    OP_DATASET("ParallelMapDataset",
               "input_dataset:variant other_arguments:list(Targuments) "
               "num_parallel_calls:int32",
               "f:func Targuments:list(type)>=0 " OP_ELEMENTS
               " use_inter_op_parallelism:bool=true sloppy:bool=false "
               "preserve_cardinality:bool=false " OP_METADATA);

const struct op op_parallel_map_dataset_v2 = OP_DATASET(
    "ParallelMapDatasetV2",
    "input_dataset:variant other_arguments:list(Targuments) "
    "num_parallel_calls:int64",
    "f:func Targuments:list(type)>=0 " OP_ELEMENTS
    " use_inter_op_parallelism:bool=true deterministic:string='default' "
    "preserve_cardinality:bool=false use_unbounded_threadpool:bool=false " OP_METADATA);

const struct op op_map_and_batch_dataset =
    OP_DATASET("MapAndBatchDataset",
               "input_dataset:variant other_arguments:list(Targuments) "
               "batch_size:int64 num_parallel_calls:int64 drop_remainder:bool",
               "f:func Targuments:list(type)>=0 " OP_ELEMENTS
               " preserve_cardinality:bool=false " OP_METADATA);

const struct op op_filter_dataset =
    OP_DATASET("FilterDataset", "input_dataset:variant other_arguments:list(Targuments)",
               "predicate:func Targuments:list(type)>=0 " OP_ELEMENTS " " OP_METADATA);

const struct op op_parallel_filter_dataset =
    OP_DATASET("ParallelFilterDataset",
               "input_dataset:variant other_arguments:list(Targuments) "
               "num_parallel_calls:int64",
               "predicate:func deterministic:string='default' "
               "Targuments:list(type)>=0 " OP_ELEMENTS " " OP_METADATA);

const struct op op_take_while_dataset =
    OP_DATASET("TakeWhileDataset", "input_dataset:variant other_arguments:list(Targuments)",
               "predicate:func Targuments:list(type)>=0 " OP_ELEMENTS " " OP_METADATA);

const struct op op_scan_dataset =
    OP_DATASET("ScanDataset",
               "input_dataset:variant initial_state:list(Tstate) "
               "other_arguments:list(Targuments)",
               "f:func Tstate:list(type)>=1 Targuments:list(type)>=0 " OP_ELEMENTS
               " preserve_cardinality:bool=false use_default_device:bool=true " OP_METADATA);

const struct op op_flat_map_dataset =
    OP_DATASET("FlatMapDataset", "input_dataset:variant other_arguments:list(Targuments)",
               "f:func Targuments:list(type)>=0 " OP_ELEMENTS " " OP_METADATA);

const struct op op_interleave_dataset =
    OP_DATASET("InterleaveDataset",
               "input_dataset:variant other_arguments:list(Targuments) "
               "cycle_length:int64 block_length:int64",
               "f:func Targuments:list(type)>=0 " OP_ELEMENTS " " OP_METADATA);

const struct op op_parallel_interleave_dataset =
    OP_DATASET("ParallelInterleaveDataset",
               "input_dataset:variant other_arguments:list(Targuments) "
               "cycle_length:int64 block_length:int64 sloppy:bool "
               "buffer_output_elements:int64 prefetch_input_elements:int64",
               "f:func Targuments:list(type)>=0 " OP_ELEMENTS " " OP_METADATA);

const struct op op_legacy_parallel_interleave_dataset_v2 =
    OP_DATASET("LegacyParallelInterleaveDatasetV2",
               "input_dataset:variant other_arguments:list(Targuments) "
               "cycle_length:int64 block_length:int64 buffer_output_elements:int64 "
               "prefetch_input_elements:int64",
               "f:func deterministic:string='default' Targuments:list(type)>=0 " OP_ELEMENTS
               " " OP_METADATA);

const struct op op_parallel_interleave_dataset_v2 = OP_DATASET(
    "ParallelInterleaveDatasetV2",
    "input_dataset:variant other_arguments:list(Targuments) "
    "cycle_length:int64 block_length:int64 num_parallel_calls:int64",
    "f:func Targuments:list(type)>=0 " OP_ELEMENTS " sloppy:bool=false " OP_METADATA);

const struct op op_parallel_interleave_dataset_v3 =
    OP_DATASET("ParallelInterleaveDatasetV3",
               "input_dataset:variant other_arguments:list(Targuments) "
               "cycle_length:int64 block_length:int64 num_parallel_calls:int64",
               "f:func deterministic:string='default' Targuments:list(type)>=0 " OP_ELEMENTS
               " " OP_METADATA);

const struct op op_parallel_interleave_dataset_v4 =
    OP_DATASET("ParallelInterleaveDatasetV4",
               "input_dataset:variant other_arguments:list(Targuments) "
               "cycle_length:int64 block_length:int64 buffer_output_elements:int64 "
               "prefetch_input_elements:int64 num_parallel_calls:int64",
               "f:func deterministic:string='default' Targuments:list(type)>=0 " OP_ELEMENTS
               " " OP_METADATA);

const struct op op_generator_dataset =
    OP_DATASET_STATEFUL("GeneratorDataset",
                        "init_func_other_args:list(Tinit_func_args) "
                        "next_func_other_args:list(Tnext_func_args) "
                        "finalize_func_other_args:list(Tfinalize_func_args)",
                        "init_func:func next_func:func finalize_func:func "
                        "Tinit_func_args:list(type)>=0 Tnext_func_args:list(type)>=0 "
                        "Tfinalize_func_args:list(type)>=0 " OP_ELEMENTS " " OP_METADATA);

const struct op op_group_by_window_dataset =
    OP_DATASET("GroupByWindowDataset",
               "input_dataset:variant "
               "key_func_other_arguments:list(Tkey_func_other_arguments) "
               "reduce_func_other_arguments:list(Treduce_func_other_arguments) "
               "window_size_func_other_arguments:list(Twindow_size_func_other_arguments)",
               "key_func:func reduce_func:func window_size_func:func "
               "Tkey_func_other_arguments:list(type)>=0 "
               "Treduce_func_other_arguments:list(type)>=0 "
               "Twindow_size_func_other_arguments:list(type)>=0 " OP_ELEMENTS " " OP_METADATA);

const struct op op_group_by_reducer_dataset =
    OP_DATASET_STATEFUL("GroupByReducerDataset",
                        "input_dataset:variant "
                        "key_func_other_arguments:list(Tkey_func_other_arguments) "
                        "init_func_other_arguments:list(Tinit_func_other_arguments) "
                        "reduce_func_other_arguments:list(Treduce_func_other_arguments) "
                        "finalize_func_other_arguments:list(Tfinalize_func_other_arguments)",
                        "key_func:func init_func:func reduce_func:func finalize_func:func "
                        "Tkey_func_other_arguments:list(type)>=0 "
                        "Tinit_func_other_arguments:list(type)>=0 "
                        "Treduce_func_other_arguments:list(type)>=0 "
                        "Tfinalize_func_other_arguments:list(type)>=0 " OP_ELEMENTS);

const struct op op_reduce_dataset = {
    .name = "ReduceDataset",
    .inputs = "input_dataset:variant initial_state:list(Tstate) "
              "other_arguments:list(Targuments)",
    .outputs = "components:list(output_types)",
    .attrs = "f:func Tstate:list(type)>=1 Targuments:list(type)>=0 " OP_ELEMENTS
             " use_inter_op_parallelism:bool=true " OP_METADATA,
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = op_infer_element,
    .no_gradient = true,
};

const struct op op_experimental_group_by_reducer_dataset =
    OP_DATASET_STATEFUL("ExperimentalGroupByReducerDataset",
                        "input_dataset:variant "
                        "key_func_other_arguments:list(Tkey_func_other_arguments) "
                        "init_func_other_arguments:list(Tinit_func_other_arguments) "
                        "reduce_func_other_arguments:list(Treduce_func_other_arguments) "
                        "finalize_func_other_arguments:list(Tfinalize_func_other_arguments)",
                        "key_func:func init_func:func reduce_func:func finalize_func:func "
                        "Tkey_func_other_arguments:list(type)>=0 "
                        "Tinit_func_other_arguments:list(type)>=0 "
                        "Treduce_func_other_arguments:list(type)>=0 "
                        "Tfinalize_func_other_arguments:list(type)>=0 " OP_ELEMENTS);

const struct op op_experimental_group_by_window_dataset =
    OP_DATASET("ExperimentalGroupByWindowDataset",
               "input_dataset:variant "
               "key_func_other_arguments:list(Tkey_func_other_arguments) "
               "reduce_func_other_arguments:list(Treduce_func_other_arguments) "
               "window_size_func_other_arguments:list(Twindow_size_func_other_arguments)",
               "key_func:func reduce_func:func window_size_func:func "
               "Tkey_func_other_arguments:list(type)>=0 "
               "Treduce_func_other_arguments:list(type)>=0 "
               "Twindow_size_func_other_arguments:list(type)>=0 " OP_ELEMENTS);

const struct op op_experimental_map_and_batch_dataset = OP_DATASET(
    "ExperimentalMapAndBatchDataset",
    "input_dataset:variant other_arguments:list(Targuments) "
    "batch_size:int64 num_parallel_calls:int64 drop_remainder:bool",
    "f:func Targuments:list(type)>=0 " OP_ELEMENTS " preserve_cardinality:bool=false");

const struct op op_experimental_map_dataset = OP_DATASET(
    "ExperimentalMapDataset", "input_dataset:variant other_arguments:list(Targuments)",
    "f:func Targuments:list(type)>=0 " OP_ELEMENTS
    " use_inter_op_parallelism:bool=true preserve_cardinality:bool=false "
    "force_synchronous:bool=false");

const struct op op_experimental_parallel_interleave_dataset =
    OP_DATASET("ExperimentalParallelInterleaveDataset",
               "input_dataset:variant other_arguments:list(Targuments) "
               "cycle_length:int64 block_length:int64 sloppy:bool "
               "buffer_output_elements:int64 prefetch_input_elements:int64",
               "f:func Targuments:list(type)>=0 " OP_ELEMENTS);

const struct op op_experimental_scan_dataset =
    OP_DATASET("ExperimentalScanDataset",
               "input_dataset:variant initial_state:list(Tstate) "
               "other_arguments:list(Targuments)",
               "f:func Tstate:list(type)>=1 Targuments:list(type)>=0 " OP_ELEMENTS
               " preserve_cardinality:bool=false");

const struct op op_experimental_take_while_dataset = OP_DATASET(
    "ExperimentalTakeWhileDataset", "input_dataset:variant other_arguments:list(Targuments)",
    "predicate:func Targuments:list(type)>=0 " OP_ELEMENTS);
