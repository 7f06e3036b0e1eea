/*
 * list.h - What keeps state: control flow, queues, tables, tensor arrays, lists, accumulators.
 *
 * Each has one kernel, which is its own reference; a row each, grouped by file.
 */
#pragma once

/* clang-format off */

#define KERNELS_OF_STATE(X) \
    KERNELS_OF_CONTROL_FLOW(X) \
    KERNELS_OF_FUNCTIONS(X) \
    KERNELS_OF_STACK(X) \
    KERNELS_OF_TENSOR_ARRAY(X) \
    KERNELS_OF_TENSOR_LIST(X) \
    KERNELS_OF_QUEUES(X) \
    KERNELS_OF_BARRIERS(X) \
    KERNELS_OF_ACCUMULATORS(X) \
    KERNELS_OF_TABLES(X) \
    KERNELS_OF_SESSION_TENSORS(X) \
    KERNELS_OF_STAGES(X) \
    KERNELS_OF_MUTEXES(X) \
    KERNELS_OF_COLLECTIVES(X)

#define KERNELS_OF_STACK(X) \
    X(stack_v2) X(stack_push_v2) X(stack_pop_v2) X(stack_grad) X(stack_close_v2)

#define KERNELS_OF_TENSOR_ARRAY(X) \
    X(tensor_array_v3) X(tensor_array_write_v3) X(tensor_array_read_v3) \
    X(tensor_array_size_v3) X(tensor_array_grad_v3) X(tensor_array_grad_with_shape) \
    X(tensor_array_close_v3) X(tensor_array_gather_v3) X(tensor_array_scatter_v3) \
    X(tensor_array_concat_v3) X(tensor_array_split_v3)

#define KERNELS_OF_TENSOR_LIST(X) \
    X(empty_tensor_list) X(tensor_list_reserve) X(tensor_list_length) \
    X(tensor_list_element_shape) X(tensor_list_push_back) X(tensor_list_pop_back) \
    X(tensor_list_get_item) X(tensor_list_set_item) X(tensor_list_resize) \
    X(tensor_list_stack) X(tensor_list_gather) X(tensor_list_from_tensor) \
    X(tensor_list_scatter) X(tensor_list_scatter_v2) \
    X(tensor_list_scatter_into_existing_list) X(tensor_list_concat) \
    X(tensor_list_concat_v2) X(tensor_list_split) X(tensor_list_concat_lists) \
    X(tensor_list_push_back_batch) X(zeros_like_variant) X(add_n_variant)

#define KERNELS_OF_QUEUES(X) \
    /* queue_handle.c */ \
    X(fifo_queue) X(fifo_queue_v2) X(random_shuffle_queue) X(random_shuffle_queue_v2) \
    X(padding_fifo_queue) X(padding_fifo_queue_v2) X(priority_queue) X(priority_queue_v2) \
    /* queue_ops.c */ \
    X(queue_enqueue) X(queue_enqueue_v2) X(queue_enqueue_many) X(queue_enqueue_many_v2) \
    X(queue_dequeue) X(queue_dequeue_v2) X(queue_dequeue_many) X(queue_dequeue_many_v2) \
    X(queue_dequeue_up_to) X(queue_dequeue_up_to_v2) X(queue_close) X(queue_close_v2) \
    X(queue_size) X(queue_size_v2) X(queue_is_closed) X(queue_is_closed_v2)

#define KERNELS_OF_BARRIERS(X) \
    /* barrier_ops.c */ \
    X(barrier) X(barrier_insert_many) X(barrier_take_many) X(barrier_close) \
    X(barrier_ready_size) X(barrier_incomplete_size)

#define KERNELS_OF_ACCUMULATORS(X) \
    /* accumulator.c */ \
    X(conditional_accumulator) X(resource_conditional_accumulator) \
    X(sparse_conditional_accumulator) X(accumulator_apply_gradient) \
    X(resource_accumulator_apply_gradient) X(sparse_accumulator_apply_gradient) \
    X(accumulator_take_gradient) X(resource_accumulator_take_gradient) \
    X(sparse_accumulator_take_gradient) X(accumulator_set_global_step) \
    X(resource_accumulator_set_global_step) X(accumulator_num_accumulated) \
    X(resource_accumulator_num_accumulated)

#define KERNELS_OF_TABLES(X) \
    /* table_handle.c */ \
    X(hash_table) X(hash_table_v2) X(mutable_hash_table) X(mutable_hash_table_v2) \
    X(mutable_hash_table_of_tensors) X(mutable_hash_table_of_tensors_v2) \
    X(mutable_dense_hash_table) X(mutable_dense_hash_table_v2) X(anonymous_hash_table) \
    X(anonymous_mutable_hash_table) X(anonymous_mutable_hash_table_of_tensors) \
    X(anonymous_mutable_dense_hash_table) \
    /* table_ops.c */ \
    X(lookup_table_find) X(lookup_table_find_v2) X(lookup_table_insert) \
    X(lookup_table_insert_v2) X(lookup_table_import) X(lookup_table_import_v2) \
    X(lookup_table_remove_v2) X(lookup_table_size) X(lookup_table_size_v2) \
    X(lookup_table_export) X(lookup_table_export_v2) X(initialize_table) \
    X(initialize_table_v2) X(initialize_table_from_text_file) \
    X(initialize_table_from_text_file_v2)

#define KERNELS_OF_SESSION_TENSORS(X) \
    X(get_session_handle) X(get_session_handle_v2) X(get_session_tensor) \
    X(delete_session_tensor)

#define KERNELS_OF_STAGES(X) \
    X(stage) X(unstage) X(stage_peek) X(stage_size) X(stage_clear)

#define KERNELS_OF_MUTEXES(X) \
    X(mutex_v2) X(mutex_lock) X(consume_mutex_lock)

#define KERNELS_OF_COLLECTIVES(X) \
    X(collective_reduce) X(collective_reduce_v2) X(collective_gather) X(collective_gather_v2) \
    X(collective_bcast_send) X(collective_bcast_send_v2) X(collective_bcast_recv) \
    X(collective_bcast_recv_v2) X(collective_assign_group_v2)

#define KERNELS_OF_CONTROL_FLOW(X) X(ref_select) X(abort)

#define KERNELS_OF_FUNCTIONS(X) \
    X(if) X(stateless_if) X(case) X(stateless_case) X(while) X(stateless_while) X(for) \
    X(partitioned_call) X(stateful_partitioned_call) X(remote_call) X(symbolic_gradient) \
    X(to_bool) X(fake_param)
