/* dataset_pass.c - tf.data: datasets whose elements are those of their input. */

#include "runtime/ops/dataset.h"

const struct op op_prefetch_dataset = OP_DATASET(
    "PrefetchDataset", "input_dataset:variant buffer_size:int64",
    OP_ELEMENTS
    " slack_period:int=0 legacy_autotune:bool=true buffer_size_min:int=0 " OP_METADATA);

const struct op op_options_dataset =
    OP_DATASET("OptionsDataset", "input_dataset:variant",
               "serialized_options:string " OP_ELEMENTS " " OP_METADATA);

const struct op op_model_dataset =
    OP_DATASET("ModelDataset", "input_dataset:variant",
               "algorithm:int=0 cpu_budget:int=0 ram_budget:int=0 " OP_ELEMENTS);

const struct op op_finalize_dataset = OP_DATASET("FinalizeDataset", "input_dataset:variant",
                                                 "has_captured_ref:bool=false " OP_ELEMENTS);

const struct op op_rewrite_dataset =
    OP_DATASET("RewriteDataset", "input_dataset:variant rewrite_name:string", OP_ELEMENTS);

const struct op op_optimize_dataset =
    OP_DATASET("OptimizeDataset", "input_dataset:variant optimizations:string",
               OP_ELEMENTS " optimization_configs:list(string)=[]");

const struct op op_optimize_dataset_v2 =
    OP_DATASET("OptimizeDatasetV2",
               "input_dataset:variant optimizations_enabled:string "
               "optimizations_disabled:string optimizations_default:string",
               OP_ELEMENTS " optimization_configs:list(string)=[]");

const struct op op_auto_shard_dataset =
    OP_DATASET("AutoShardDataset", "input_dataset:variant num_workers:int64 index:int64",
               "auto_shard_policy:int=0 " OP_ELEMENTS " num_replicas:int=0");

const struct op op_max_intra_op_parallelism_dataset =
    OP_DATASET("MaxIntraOpParallelismDataset",
               "input_dataset:variant max_intra_op_parallelism:int64", OP_ELEMENTS);

const struct op op_private_thread_pool_dataset = OP_DATASET(
    "PrivateThreadPoolDataset", "input_dataset:variant num_threads:int64", OP_ELEMENTS);

const struct op op_non_serializable_dataset =
    OP_DATASET("NonSerializableDataset", "input_dataset:variant", OP_ELEMENTS);

const struct op op_latency_stats_dataset =
    OP_DATASET("LatencyStatsDataset", "input_dataset:variant tag:string", OP_ELEMENTS);

const struct op op_bytes_produced_stats_dataset =
    OP_DATASET("BytesProducedStatsDataset", "input_dataset:variant tag:string", OP_ELEMENTS);

const struct op op_set_stats_aggregator_dataset =
    OP_DATASET_STATEFUL("SetStatsAggregatorDataset",
                        "input_dataset:variant stats_aggregator:resource tag:string "
                        "counter_prefix:string",
                        OP_ELEMENTS);

const struct op op_assert_cardinality_dataset = OP_DATASET(
    "AssertCardinalityDataset", "input_dataset:variant cardinality:int64", OP_ELEMENTS);

const struct op op_ignore_errors_dataset = OP_DATASET(
    "IgnoreErrorsDataset", "input_dataset:variant", OP_ELEMENTS " log_warning:bool=false");

const struct op op_unique_dataset =
    OP_DATASET("UniqueDataset", "input_dataset:variant", OP_ELEMENTS " " OP_METADATA);

const struct op op_experimental_auto_shard_dataset = OP_DATASET(
    "ExperimentalAutoShardDataset", "input_dataset:variant num_workers:int64 index:int64",
    "auto_shard_policy:int=0 " OP_ELEMENTS);

const struct op op_experimental_bytes_produced_stats_dataset = OP_DATASET(
    "ExperimentalBytesProducedStatsDataset", "input_dataset:variant tag:string", OP_ELEMENTS);

const struct op op_experimental_ignore_errors_dataset =
    OP_DATASET("ExperimentalIgnoreErrorsDataset", "input_dataset:variant",
               OP_ELEMENTS " log_warning:bool=false");

const struct op op_experimental_latency_stats_dataset = OP_DATASET(
    "ExperimentalLatencyStatsDataset", "input_dataset:variant tag:string", OP_ELEMENTS);

const struct op op_experimental_max_intra_op_parallelism_dataset =
    OP_DATASET("ExperimentalMaxIntraOpParallelismDataset",
               "input_dataset:variant max_intra_op_parallelism:int64", OP_ELEMENTS);

const struct op op_experimental_non_serializable_dataset =
    OP_DATASET("ExperimentalNonSerializableDataset", "input_dataset:variant", OP_ELEMENTS);

const struct op op_experimental_private_thread_pool_dataset =
    OP_DATASET("ExperimentalPrivateThreadPoolDataset",
               "input_dataset:variant num_threads:int64", OP_ELEMENTS);

const struct op op_experimental_set_stats_aggregator_dataset =
    OP_DATASET_STATEFUL("ExperimentalSetStatsAggregatorDataset",
                        "input_dataset:variant stats_aggregator:resource tag:string "
                        "counter_prefix:string",
                        OP_ELEMENTS);

const struct op op_experimental_unique_dataset =
    OP_DATASET("ExperimentalUniqueDataset", "input_dataset:variant", OP_ELEMENTS);
