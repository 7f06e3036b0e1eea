/* dataset.c - tf.data: datasets of tensors, of files and of other datasets. */

#include "runtime/ops/dataset.h"

const struct op op_tensor_dataset = OP_DATASET_STATEFUL(
    "TensorDataset", "components:list(Toutput_types)", "T" OP_ELEMENTS " " OP_METADATA);

const struct op op_tensor_slice_dataset = OP_DATASET_STATEFUL(
    "TensorSliceDataset", "components:list(Toutput_types)",
    "T" OP_ELEMENTS " is_files:bool=false metadata:string='' replicate_on_split:bool=false");

const struct op op_sparse_tensor_slice_dataset =
    OP_DATASET_STATEFUL("SparseTensorSliceDataset",
                        "indices:int64 values:Tvalues dense_shape:int64", "Tvalues:type");

const struct op op_range_dataset =
    OP_DATASET_STATEFUL("RangeDataset", "start:int64 stop:int64 step:int64",
                        OP_ELEMENTS " metadata:string='' replicate_on_split:bool=false");

const struct op op_random_dataset =
    OP_DATASET_STATEFUL("RandomDataset", "seed:int64 seed2:int64", OP_ELEMENTS " " OP_METADATA);

const struct op op_repeat_dataset = OP_DATASET(
    "RepeatDataset", "input_dataset:variant count:int64", OP_ELEMENTS " " OP_METADATA);

const struct op op_take_dataset =
    OP_DATASET("TakeDataset", "input_dataset:variant count:int64", OP_ELEMENTS " " OP_METADATA);

const struct op op_skip_dataset =
    OP_DATASET("SkipDataset", "input_dataset:variant count:int64", OP_ELEMENTS " " OP_METADATA);

const struct op op_shard_dataset =
    OP_DATASET("ShardDataset", "input_dataset:variant num_shards:int64 index:int64",
               "require_non_empty:bool=false " OP_ELEMENTS " " OP_METADATA);

const struct op op_concatenate_dataset =
    OP_DATASET("ConcatenateDataset", "input_dataset:variant another_dataset:variant",
               OP_ELEMENTS " " OP_METADATA);

const struct op op_zip_dataset =
    OP_DATASET("ZipDataset", "input_datasets:N*variant", OP_ELEMENTS " N:int>=1 " OP_METADATA);

const struct op op_shuffle_dataset = OP_DATASET(
    "ShuffleDataset", "input_dataset:variant buffer_size:int64 seed:int64 seed2:int64",
    "reshuffle_each_iteration:bool=true " OP_ELEMENTS " " OP_METADATA);

const struct op op_shuffle_dataset_v2 = OP_DATASET_STATEFUL(
    "ShuffleDatasetV2", "input_dataset:variant buffer_size:int64 seed_generator:resource",
    OP_ELEMENTS " " OP_METADATA);

const struct op op_shuffle_dataset_v3 =
    OP_DATASET_STATEFUL("ShuffleDatasetV3",
                        "input_dataset:variant buffer_size:int64 seed:int64 seed2:int64 "
                        "seed_generator:resource",
                        "reshuffle_each_iteration:bool=true " OP_ELEMENTS " " OP_METADATA);

const struct op op_shuffle_and_repeat_dataset =
    OP_DATASET("ShuffleAndRepeatDataset",
               "input_dataset:variant buffer_size:int64 seed:int64 seed2:int64 "
               "count:int64",
               OP_ELEMENTS " reshuffle_each_iteration:bool=true " OP_METADATA);

const struct op op_shuffle_and_repeat_dataset_v2 =
    OP_DATASET_STATEFUL("ShuffleAndRepeatDatasetV2",
                        "input_dataset:variant buffer_size:int64 seed:int64 seed2:int64 "
                        "count:int64 seed_generator:resource",
                        "reshuffle_each_iteration:bool=true " OP_ELEMENTS " " OP_METADATA);

const struct op op_batch_dataset = OP_DATASET(
    "BatchDataset", "input_dataset:variant batch_size:int64", OP_ELEMENTS " " OP_METADATA);

const struct op op_batch_dataset_v2 =
    OP_DATASET("BatchDatasetV2", "input_dataset:variant batch_size:int64 drop_remainder:bool",
               "parallel_copy:bool=false " OP_ELEMENTS " " OP_METADATA);

const struct op op_padded_batch_dataset =
    OP_DATASET("PaddedBatchDataset",
               "input_dataset:variant batch_size:int64 padded_shapes:N*int64 "
               "padding_values:list(Toutput_types)",
               "T" OP_ELEMENTS " N:int>=1 " OP_METADATA);

const struct op op_padded_batch_dataset_v2 =
    OP_DATASET("PaddedBatchDatasetV2",
               "input_dataset:variant batch_size:int64 padded_shapes:N*int64 "
               "padding_values:list(Toutput_types) drop_remainder:bool",
               "parallel_copy:bool=false T" OP_ELEMENTS " N:int>=1 " OP_METADATA);

const struct op op_unbatch_dataset =
    OP_DATASET("UnbatchDataset", "input_dataset:variant", OP_ELEMENTS " " OP_METADATA);

const struct op op_window_dataset =
    OP_DATASET("WindowDataset",
               "input_dataset:variant size:int64 shift:int64 stride:int64 "
               "drop_remainder:bool",
               OP_ELEMENTS " " OP_METADATA);

const struct op op_directed_interleave_dataset = OP_DATASET(
    "DirectedInterleaveDataset", "selector_input_dataset:variant data_input_datasets:N*variant",
    OP_ELEMENTS " N:int>=1 stop_on_empty_dataset:bool=false");

const struct op op_cache_dataset = OP_DATASET(
    "CacheDataset", "input_dataset:variant filename:string", OP_ELEMENTS " " OP_METADATA);

const struct op op_cache_dataset_v2 = OP_DATASET_STATEFUL(
    "CacheDatasetV2", "input_dataset:variant filename:string cache:resource",
    OP_ELEMENTS " " OP_METADATA);

const struct op op_tf_record_dataset = OP_DATASET_STATEFUL(
    "TFRecordDataset", "filenames:string compression_type:string buffer_size:int64",
    OP_METADATA);

const struct op op_tf_record_dataset_v2 =
    OP_DATASET_STATEFUL("TFRecordDatasetV2",
                        "filenames:string compression_type:string buffer_size:int64 "
                        "byte_offsets:int64",
                        OP_METADATA);

const struct op op_text_line_dataset = OP_DATASET_STATEFUL(
    "TextLineDataset", "filenames:string compression_type:string buffer_size:int64",
    OP_METADATA);

const struct op op_fixed_length_record_dataset =
    OP_DATASET_STATEFUL("FixedLengthRecordDataset",
                        "filenames:string header_bytes:int64 record_bytes:int64 "
                        "footer_bytes:int64 buffer_size:int64",
                        OP_METADATA);

const struct op op_fixed_length_record_dataset_v2 =
    OP_DATASET_STATEFUL("FixedLengthRecordDatasetV2",
                        "filenames:string header_bytes:int64 record_bytes:int64 "
                        "footer_bytes:int64 buffer_size:int64 compression_type:string",
                        OP_METADATA);

const struct op op_wrap_dataset_variant =
    OP_SCALAR("WrapDatasetVariant", "input_handle:variant", "output_handle:variant", "", 0);

const struct op op_unwrap_dataset_variant =
    OP_SCALAR("UnwrapDatasetVariant", "input_handle:variant", "output_handle:variant", "", 0);

const struct op op_dataset_cardinality =
    OP_SCALAR("DatasetCardinality", "input_dataset:variant", "cardinality:int64",
              "cardinality_options:string=''", 0);

const struct op op_dataset_to_single_element = {
    .name = "DatasetToSingleElement",
    .inputs = "dataset:variant",
    .outputs = "components:list(output_types)",
    .attrs = OP_ELEMENTS " " OP_METADATA,
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = op_infer_element,
    .no_gradient = true,
};

const struct op op_dense_to_sparse_batch_dataset =
    OP_DATASET("DenseToSparseBatchDataset",
               "input_dataset:variant batch_size:int64 row_shape:int64", OP_ELEMENTS);

const struct op op_experimental_directed_interleave_dataset = OP_DATASET(
    "ExperimentalDirectedInterleaveDataset",
    "selector_input_dataset:variant data_input_datasets:N*variant", OP_ELEMENTS " N:int>=1");

const struct op op_experimental_random_dataset =
    OP_DATASET_STATEFUL("ExperimentalRandomDataset", "seed:int64 seed2:int64", OP_ELEMENTS);

const struct op op_experimental_unbatch_dataset =
    OP_DATASET("ExperimentalUnbatchDataset", "input_dataset:variant", OP_ELEMENTS);

const struct op op_experimental_dataset_cardinality = OP_SCALAR(
    "ExperimentalDatasetCardinality", "input_dataset:variant", "cardinality:int64", "", 0);
