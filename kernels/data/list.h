/*
 * list.h - tf.data: datasets and iterators.
 *
 * Each has one kernel, which is its own reference; a row each, grouped by file.
 */
#pragma once

/* clang-format off */

#define KERNELS_OF_DATA(X) \
    /* batch.c */ \
    X(batch_dataset) X(batch_dataset_v2) X(padded_batch_dataset) \
    X(padded_batch_dataset_v2) X(unbatch_dataset) X(experimental_unbatch_dataset) \
    /* cache.c */ \
    X(cache_dataset) X(cache_dataset_v2) X(anonymous_memory_cache) X(dummy_memory_cache) \
    X(dummy_seed_generator) X(dummy_iteration_counter) X(delete_memory_cache) \
    X(delete_seed_generator) X(delete_random_seed_generator) \
    /* files.c */ \
    X(tf_record_dataset) X(tf_record_dataset_v2) X(text_line_dataset) \
    X(fixed_length_record_dataset) X(fixed_length_record_dataset_v2) \
    /* generator.c */ \
    X(generator_dataset) \
    /* group.c */ \
    X(group_by_window_dataset) X(experimental_group_by_window_dataset) \
    X(group_by_reducer_dataset) X(experimental_group_by_reducer_dataset) \
    /* iterator_kernel.c */ \
    X(anonymous_iterator) X(anonymous_iterator_v2) X(anonymous_iterator_v3) \
    X(delete_iterator) X(make_iterator) X(one_shot_iterator) X(iterator_get_next) \
    X(iterator_get_next_sync) X(iterator_get_next_as_optional) \
    X(iterator_to_string_handle) X(iterator_from_string_handle) \
    X(iterator_from_string_handle_v2) X(iterator) X(iterator_v2) \
    /* map.c */ \
    X(map_dataset) X(parallel_map_dataset) X(parallel_map_dataset_v2) \
    X(map_and_batch_dataset) X(filter_dataset) X(parallel_filter_dataset) \
    X(take_while_dataset) X(scan_dataset) X(experimental_map_and_batch_dataset) \
    X(experimental_map_dataset) X(experimental_scan_dataset) \
    X(experimental_take_while_dataset) \
    /* nest.c */ \
    X(flat_map_dataset) X(interleave_dataset) X(parallel_interleave_dataset) \
    X(legacy_parallel_interleave_dataset_v2) X(parallel_interleave_dataset_v2) \
    X(parallel_interleave_dataset_v3) X(parallel_interleave_dataset_v4) \
    X(directed_interleave_dataset) X(experimental_directed_interleave_dataset) \
    X(experimental_parallel_interleave_dataset) \
    /* optional.c */ \
    X(optional_from_value) X(optional_none) X(optional_has_value) X(optional_get_value) \
    /* order.c */ \
    X(repeat_dataset) X(take_dataset) X(skip_dataset) X(shard_dataset) \
    X(concatenate_dataset) X(zip_dataset) \
    /* pass.c */ \
    X(options_dataset) X(model_dataset) X(finalize_dataset) X(rewrite_dataset) \
    X(optimize_dataset) X(optimize_dataset_v2) X(auto_shard_dataset) \
    X(max_intra_op_parallelism_dataset) X(private_thread_pool_dataset) \
    X(non_serializable_dataset) X(latency_stats_dataset) X(bytes_produced_stats_dataset) \
    X(set_stats_aggregator_dataset) X(assert_cardinality_dataset) \
    X(ignore_errors_dataset) X(unique_dataset) X(experimental_auto_shard_dataset) \
    X(experimental_bytes_produced_stats_dataset) X(experimental_ignore_errors_dataset) \
    X(experimental_latency_stats_dataset) \
    X(experimental_max_intra_op_parallelism_dataset) \
    X(experimental_non_serializable_dataset) X(experimental_private_thread_pool_dataset) \
    X(experimental_set_stats_aggregator_dataset) X(experimental_unique_dataset) \
    /* parse_examples.c */ \
    X(parse_example_dataset) X(parse_example_dataset_v2) \
    X(experimental_parse_example_dataset) \
    /* prefetch.c */ \
    X(prefetch_dataset) \
    /* ragged.c */ \
    X(ragged_tensor_to_variant) X(ragged_tensor_from_variant) \
    /* shuffle.c */ \
    X(shuffle_dataset) X(shuffle_dataset_v2) X(shuffle_dataset_v3) \
    X(shuffle_and_repeat_dataset) X(shuffle_and_repeat_dataset_v2) \
    X(anonymous_seed_generator) X(anonymous_random_seed_generator) \
    /* source.c */ \
    X(tensor_dataset) X(tensor_slice_dataset) X(sparse_tensor_slice_dataset) \
    X(range_dataset) X(random_dataset) X(experimental_random_dataset) \
    /* sparse.c */ \
    X(serialize_sparse) X(serialize_many_sparse) X(deserialize_sparse) \
    X(deserialize_many_sparse) \
    /* sparse_map.c */ \
    X(add_sparse_to_tensors_map) X(add_many_sparse_to_tensors_map) \
    X(take_many_sparse_from_tensors_map) \
    /* sparse_batch.c */ \
    X(dense_to_sparse_batch_dataset) \
    /* walk.c */ \
    X(reduce_dataset) X(dataset_to_single_element) X(dataset_cardinality_op) \
    X(experimental_dataset_cardinality_op) X(wrap_dataset_variant) \
    X(unwrap_dataset_variant) \
    /* window.c */ \
    X(window_dataset)
