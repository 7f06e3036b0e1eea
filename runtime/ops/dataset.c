/* dataset.c - tf.data: datasets of tensors, of files and of other datasets. */

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

const struct op op_tensor_dataset = {
    .name = "TensorDataset",
    .inputs = "components:list(Toutput_types)",
    .outputs = "handle:variant",
    .attrs = "Toutput_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_slice_dataset = {
    .name = "TensorSliceDataset",
    .inputs = "components:list(Toutput_types)",
    .outputs = "handle:variant",
    .attrs = "Toutput_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "is_files:bool=false metadata:string='' replicate_on_split:bool=false",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_sparse_tensor_slice_dataset = {
    .name = "SparseTensorSliceDataset",
    .inputs = "indices:int64 values:Tvalues dense_shape:int64",
    .outputs = "handle:variant",
    .attrs = "Tvalues:type",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_range_dataset = {
    .name = "RangeDataset",
    .inputs = "start:int64 stop:int64 step:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string='' replicate_on_split:bool=false",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_random_dataset = {
    .name = "RandomDataset",
    .inputs = "seed:int64 seed2:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_repeat_dataset = {
    .name = "RepeatDataset",
    .inputs = "input_dataset:variant count:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_take_dataset = {
    .name = "TakeDataset",
    .inputs = "input_dataset:variant count:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_skip_dataset = {
    .name = "SkipDataset",
    .inputs = "input_dataset:variant count:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_shard_dataset = {
    .name = "ShardDataset",
    .inputs = "input_dataset:variant num_shards:int64 index:int64",
    .outputs = "handle:variant",
    .attrs = "require_non_empty:bool=false output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_concatenate_dataset = {
    .name = "ConcatenateDataset",
    .inputs = "input_dataset:variant another_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_zip_dataset = {
    .name = "ZipDataset",
    .inputs = "input_datasets:N*variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 N:int>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_shuffle_dataset = {
    .name = "ShuffleDataset",
    .inputs = "input_dataset:variant buffer_size:int64 seed:int64 seed2:int64",
    .outputs = "handle:variant",
    .attrs = "reshuffle_each_iteration:bool=true output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_shuffle_dataset_v2 = {
    .name = "ShuffleDatasetV2",
    .inputs = "input_dataset:variant buffer_size:int64 seed_generator:resource",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_shuffle_dataset_v3 = {
    .name = "ShuffleDatasetV3",
    .inputs = "input_dataset:variant buffer_size:int64 seed:int64 seed2:int64 "
              "seed_generator:resource",
    .outputs = "handle:variant",
    .attrs = "reshuffle_each_iteration:bool=true output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_shuffle_and_repeat_dataset = {
    .name = "ShuffleAndRepeatDataset",
    .inputs = "input_dataset:variant buffer_size:int64 seed:int64 seed2:int64 "
              "count:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "reshuffle_each_iteration:bool=true metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_shuffle_and_repeat_dataset_v2 = {
    .name = "ShuffleAndRepeatDatasetV2",
    .inputs = "input_dataset:variant buffer_size:int64 seed:int64 seed2:int64 "
              "count:int64 seed_generator:resource",
    .outputs = "handle:variant",
    .attrs = "reshuffle_each_iteration:bool=true output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_batch_dataset = {
    .name = "BatchDataset",
    .inputs = "input_dataset:variant batch_size:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_batch_dataset_v2 = {
    .name = "BatchDatasetV2",
    .inputs = "input_dataset:variant batch_size:int64 drop_remainder:bool",
    .outputs = "handle:variant",
    .attrs = "parallel_copy:bool=false output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_padded_batch_dataset = {
    .name = "PaddedBatchDataset",
    .inputs = "input_dataset:variant batch_size:int64 padded_shapes:N*int64 "
              "padding_values:list(Toutput_types)",
    .outputs = "handle:variant",
    .attrs = "Toutput_types:list(type)>=1 output_shapes:list(shape)>=1 N:int>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_padded_batch_dataset_v2 = {
    .name = "PaddedBatchDatasetV2",
    .inputs = "input_dataset:variant batch_size:int64 padded_shapes:N*int64 "
              "padding_values:list(Toutput_types) drop_remainder:bool",
    .outputs = "handle:variant",
    .attrs = "parallel_copy:bool=false Toutput_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 N:int>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_unbatch_dataset = {
    .name = "UnbatchDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_window_dataset = {
    .name = "WindowDataset",
    .inputs = "input_dataset:variant size:int64 shift:int64 stride:int64 "
              "drop_remainder:bool",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_directed_interleave_dataset = {
    .name = "DirectedInterleaveDataset",
    .inputs = "selector_input_dataset:variant data_input_datasets:N*variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 N:int>=1 "
             "stop_on_empty_dataset:bool=false",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_cache_dataset = {
    .name = "CacheDataset",
    .inputs = "input_dataset:variant filename:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_cache_dataset_v2 = {
    .name = "CacheDatasetV2",
    .inputs = "input_dataset:variant filename:string cache:resource",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tf_record_dataset = {
    .name = "TFRecordDataset",
    .inputs = "filenames:string compression_type:string buffer_size:int64",
    .outputs = "handle:variant",
    .attrs = "metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tf_record_dataset_v2 = {
    .name = "TFRecordDatasetV2",
    .inputs = "filenames:string compression_type:string buffer_size:int64 "
              "byte_offsets:int64",
    .outputs = "handle:variant",
    .attrs = "metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_text_line_dataset = {
    .name = "TextLineDataset",
    .inputs = "filenames:string compression_type:string buffer_size:int64",
    .outputs = "handle:variant",
    .attrs = "metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_fixed_length_record_dataset = {
    .name = "FixedLengthRecordDataset",
    .inputs = "filenames:string header_bytes:int64 record_bytes:int64 "
              "footer_bytes:int64 buffer_size:int64",
    .outputs = "handle:variant",
    .attrs = "metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_fixed_length_record_dataset_v2 = {
    .name = "FixedLengthRecordDatasetV2",
    .inputs = "filenames:string header_bytes:int64 record_bytes:int64 "
              "footer_bytes:int64 buffer_size:int64 compression_type:string",
    .outputs = "handle:variant",
    .attrs = "metadata:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_wrap_dataset_variant = {
    .name = "WrapDatasetVariant",
    .inputs = "input_handle:variant",
    .outputs = "output_handle:variant",
    .attrs = "",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_unwrap_dataset_variant = {
    .name = "UnwrapDatasetVariant",
    .inputs = "input_handle:variant",
    .outputs = "output_handle:variant",
    .attrs = "",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_dataset_cardinality = {
    .name = "DatasetCardinality",
    .inputs = "input_dataset:variant",
    .outputs = "cardinality:int64",
    .attrs = "cardinality_options:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_dataset_to_single_element = {
    .name = "DatasetToSingleElement",
    .inputs = "dataset:variant",
    .outputs = "components:list(output_types)",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .flags = OP_STATEFUL | OP_EXPENSIVE,
    .infer = infer_element,
    .no_gradient = true,
};

const struct op op_dense_to_sparse_batch_dataset = {
    .name = "DenseToSparseBatchDataset",
    .inputs = "input_dataset:variant batch_size:int64 row_shape:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_directed_interleave_dataset = {
    .name = "ExperimentalDirectedInterleaveDataset",
    .inputs = "selector_input_dataset:variant data_input_datasets:N*variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 N:int>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_random_dataset = {
    .name = "ExperimentalRandomDataset",
    .inputs = "seed:int64 seed2:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_unbatch_dataset = {
    .name = "ExperimentalUnbatchDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_dataset_cardinality = {
    .name = "ExperimentalDatasetCardinality",
    .inputs = "input_dataset:variant",
    .outputs = "cardinality:int64",
    .attrs = "",
    .infer = op_infer_scalar,
    .no_gradient = true,
};
