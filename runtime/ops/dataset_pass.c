/* dataset_pass.c - tf.data: datasets whose elements are those of their input. */

#include "runtime/ops/internal.h"

const struct op op_prefetch_dataset = {
    .name = "PrefetchDataset",
    .inputs = "input_dataset:variant buffer_size:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "slack_period:int=0 legacy_autotune:bool=true buffer_size_min:int=0 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_options_dataset = {
    .name = "OptionsDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "serialized_options:string output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_model_dataset = {
    .name = "ModelDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "algorithm:int=0 cpu_budget:int=0 ram_budget:int=0 "
             "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_finalize_dataset = {
    .name = "FinalizeDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "has_captured_ref:bool=false output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_rewrite_dataset = {
    .name = "RewriteDataset",
    .inputs = "input_dataset:variant rewrite_name:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_optimize_dataset = {
    .name = "OptimizeDataset",
    .inputs = "input_dataset:variant optimizations:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "optimization_configs:list(string)=[]",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_optimize_dataset_v2 = {
    .name = "OptimizeDatasetV2",
    .inputs = "input_dataset:variant optimizations_enabled:string "
              "optimizations_disabled:string optimizations_default:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "optimization_configs:list(string)=[]",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_auto_shard_dataset = {
    .name = "AutoShardDataset",
    .inputs = "input_dataset:variant num_workers:int64 index:int64",
    .outputs = "handle:variant",
    .attrs = "auto_shard_policy:int=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1 num_replicas:int=0",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_max_intra_op_parallelism_dataset = {
    .name = "MaxIntraOpParallelismDataset",
    .inputs = "input_dataset:variant max_intra_op_parallelism:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_private_thread_pool_dataset = {
    .name = "PrivateThreadPoolDataset",
    .inputs = "input_dataset:variant num_threads:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_non_serializable_dataset = {
    .name = "NonSerializableDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_latency_stats_dataset = {
    .name = "LatencyStatsDataset",
    .inputs = "input_dataset:variant tag:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_bytes_produced_stats_dataset = {
    .name = "BytesProducedStatsDataset",
    .inputs = "input_dataset:variant tag:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_set_stats_aggregator_dataset = {
    .name = "SetStatsAggregatorDataset",
    .inputs = "input_dataset:variant stats_aggregator:resource tag:string "
              "counter_prefix:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_assert_cardinality_dataset = {
    .name = "AssertCardinalityDataset",
    .inputs = "input_dataset:variant cardinality:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_ignore_errors_dataset = {
    .name = "IgnoreErrorsDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "log_warning:bool=false",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_unique_dataset = {
    .name = "UniqueDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "metadata:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_auto_shard_dataset = {
    .name = "ExperimentalAutoShardDataset",
    .inputs = "input_dataset:variant num_workers:int64 index:int64",
    .outputs = "handle:variant",
    .attrs = "auto_shard_policy:int=0 output_types:list(type)>=1 "
             "output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_bytes_produced_stats_dataset = {
    .name = "ExperimentalBytesProducedStatsDataset",
    .inputs = "input_dataset:variant tag:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_ignore_errors_dataset = {
    .name = "ExperimentalIgnoreErrorsDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1 "
             "log_warning:bool=false",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_latency_stats_dataset = {
    .name = "ExperimentalLatencyStatsDataset",
    .inputs = "input_dataset:variant tag:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_max_intra_op_parallelism_dataset = {
    .name = "ExperimentalMaxIntraOpParallelismDataset",
    .inputs = "input_dataset:variant max_intra_op_parallelism:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_non_serializable_dataset = {
    .name = "ExperimentalNonSerializableDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_private_thread_pool_dataset = {
    .name = "ExperimentalPrivateThreadPoolDataset",
    .inputs = "input_dataset:variant num_threads:int64",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_set_stats_aggregator_dataset = {
    .name = "ExperimentalSetStatsAggregatorDataset",
    .inputs = "input_dataset:variant stats_aggregator:resource tag:string "
              "counter_prefix:string",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_experimental_unique_dataset = {
    .name = "ExperimentalUniqueDataset",
    .inputs = "input_dataset:variant",
    .outputs = "handle:variant",
    .attrs = "output_types:list(type)>=1 output_shapes:list(shape)>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};
