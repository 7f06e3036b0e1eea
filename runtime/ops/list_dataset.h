/* list_dataset.h - the rows of tf.data, for list.h. */
#pragma once

/* clang-format off */

#define OPS_DATASET(X) \
    X(tensor_dataset) X(tensor_slice_dataset) X(sparse_tensor_slice_dataset) \
    X(range_dataset) X(random_dataset) X(repeat_dataset) X(take_dataset) X(skip_dataset) \
    X(shard_dataset) X(concatenate_dataset) X(zip_dataset) X(shuffle_dataset) \
    X(shuffle_dataset_v2) X(shuffle_dataset_v3) X(shuffle_and_repeat_dataset) \
    X(shuffle_and_repeat_dataset_v2) X(batch_dataset) X(batch_dataset_v2) \
    X(padded_batch_dataset) X(padded_batch_dataset_v2) X(unbatch_dataset) X(window_dataset) \
    X(directed_interleave_dataset) X(cache_dataset) X(cache_dataset_v2) X(tf_record_dataset) \
    X(tf_record_dataset_v2) X(text_line_dataset) X(fixed_length_record_dataset) \
    X(fixed_length_record_dataset_v2) X(wrap_dataset_variant) X(unwrap_dataset_variant) \
    X(dataset_cardinality) X(dataset_to_single_element) X(dense_to_sparse_batch_dataset) \
    X(experimental_directed_interleave_dataset) X(experimental_random_dataset) \
    X(experimental_unbatch_dataset) X(experimental_dataset_cardinality) X(prefetch_dataset) \
    X(options_dataset) X(model_dataset) X(finalize_dataset) X(rewrite_dataset) \
    X(optimize_dataset) X(optimize_dataset_v2) X(auto_shard_dataset) \
    X(max_intra_op_parallelism_dataset) X(private_thread_pool_dataset) \
    X(non_serializable_dataset) X(latency_stats_dataset) X(bytes_produced_stats_dataset) \
    X(set_stats_aggregator_dataset) X(assert_cardinality_dataset) X(ignore_errors_dataset) \
    X(unique_dataset) X(experimental_auto_shard_dataset) \
    X(experimental_bytes_produced_stats_dataset) X(experimental_ignore_errors_dataset) \
    X(experimental_latency_stats_dataset) X(experimental_max_intra_op_parallelism_dataset) \
    X(experimental_non_serializable_dataset) X(experimental_private_thread_pool_dataset) \
    X(experimental_set_stats_aggregator_dataset) X(experimental_unique_dataset) \
    X(map_dataset) X(parallel_map_dataset) X(parallel_map_dataset_v2) \
    X(map_and_batch_dataset) X(filter_dataset) X(parallel_filter_dataset) \
    X(take_while_dataset) X(scan_dataset) X(flat_map_dataset) X(interleave_dataset) \
    X(parallel_interleave_dataset) X(legacy_parallel_interleave_dataset_v2) \
    X(parallel_interleave_dataset_v2) X(parallel_interleave_dataset_v3) \
    X(parallel_interleave_dataset_v4) X(generator_dataset) X(group_by_window_dataset) \
    X(group_by_reducer_dataset) X(reduce_dataset) X(experimental_group_by_reducer_dataset) \
    X(experimental_group_by_window_dataset) X(experimental_map_and_batch_dataset) \
    X(experimental_map_dataset) X(experimental_parallel_interleave_dataset) \
    X(experimental_scan_dataset) X(experimental_take_while_dataset) X(serialize_sparse) \
    X(serialize_many_sparse) X(deserialize_sparse) X(deserialize_many_sparse) \
    X(add_sparse_to_tensors_map) X(add_many_sparse_to_tensors_map) \
    X(take_many_sparse_from_tensors_map) \
    X(ragged_tensor_to_variant) X(ragged_tensor_from_variant) X(parse_example_dataset) \
    X(parse_example_dataset_v2) X(experimental_parse_example_dataset) \
    X(dummy_memory_cache) X(dummy_seed_generator) X(dummy_iteration_counter) X(iterator) \
    X(iterator_v2) X(one_shot_iterator) X(anonymous_iterator_v3) \
    X(iterator_to_string_handle) X(iterator_from_string_handle) \
    X(iterator_from_string_handle_v2) X(anonymous_iterator) X(anonymous_memory_cache) \
    X(anonymous_seed_generator) X(anonymous_random_seed_generator) X(anonymous_iterator_v2) \
    X(optional_from_value) X(optional_none) X(optional_has_value) \
    X(iterator_get_next_as_optional) X(iterator_get_next) X(iterator_get_next_sync) \
    X(optional_get_value) X(make_iterator) X(delete_iterator) X(delete_memory_cache) \
    X(delete_seed_generator) X(delete_random_seed_generator)
