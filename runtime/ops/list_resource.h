/*
 * list_resource.h - rows of list.h: ops about what outlives a run and is found by a handle, but
 * for variables.
 */
#pragma once

/* clang-format off */

#define OPS_QUEUE(X) \
    X(fifo_queue) X(fifo_queue_v2) X(random_shuffle_queue) X(random_shuffle_queue_v2) \
    X(padding_fifo_queue) X(padding_fifo_queue_v2) X(priority_queue) X(priority_queue_v2) \
    X(queue_enqueue) X(queue_enqueue_v2) X(queue_enqueue_many) X(queue_enqueue_many_v2) \
    X(queue_dequeue) X(queue_dequeue_v2) X(queue_dequeue_many) X(queue_dequeue_many_v2) \
    X(queue_dequeue_up_to) X(queue_dequeue_up_to_v2) X(queue_close) X(queue_close_v2) \
    X(queue_size) X(queue_size_v2) X(queue_is_closed) X(queue_is_closed_v2) X(barrier) \
    X(barrier_insert_many) X(barrier_take_many) X(barrier_close) X(barrier_ready_size) \
    X(barrier_incomplete_size) X(conditional_accumulator) X(resource_conditional_accumulator) \
    X(sparse_conditional_accumulator) X(accumulator_apply_gradient) \
    X(resource_accumulator_apply_gradient) X(sparse_accumulator_apply_gradient) \
    X(accumulator_take_gradient) X(resource_accumulator_take_gradient) \
    X(sparse_accumulator_take_gradient) X(accumulator_set_global_step) \
    X(resource_accumulator_set_global_step) X(accumulator_num_accumulated) \
    X(resource_accumulator_num_accumulated)

#define OPS_TABLE(X) \
    X(hash_table) X(hash_table_v2) X(mutable_hash_table) X(mutable_hash_table_v2) \
    X(mutable_hash_table_of_tensors) X(mutable_hash_table_of_tensors_v2) \
    X(mutable_dense_hash_table) X(mutable_dense_hash_table_v2) X(anonymous_hash_table) \
    X(anonymous_mutable_hash_table) X(anonymous_mutable_hash_table_of_tensors) \
    X(anonymous_mutable_dense_hash_table) \
    X(lookup_table_find) X(lookup_table_find_v2) X(lookup_table_insert) \
    X(lookup_table_insert_v2) X(lookup_table_import) X(lookup_table_import_v2) \
    X(lookup_table_remove_v2) X(lookup_table_size) X(lookup_table_size_v2) \
    X(lookup_table_export) X(lookup_table_export_v2) X(initialize_table) \
    X(initialize_table_v2) X(initialize_table_from_text_file) \
    X(initialize_table_from_text_file_v2)

#define OPS_READER(X) \
    X(text_line_reader) X(text_line_reader_v2) X(fixed_length_record_reader) \
    X(fixed_length_record_reader_v2) X(tf_record_reader) X(tf_record_reader_v2) \
    X(whole_file_reader) X(whole_file_reader_v2) X(identity_reader) \
    X(identity_reader_v2) X(reader_read) X(reader_read_v2) X(reader_read_up_to) \
    X(reader_read_up_to_v2) X(reader_reset) X(reader_reset_v2) X(reader_serialize_state) \
    X(reader_serialize_state_v2) X(reader_restore_state) X(reader_restore_state_v2) \
    X(reader_num_records_produced) X(reader_num_records_produced_v2) \
    X(reader_num_work_units_completed) X(reader_num_work_units_completed_v2)

#define OPS_SESSION(X) \
    X(get_session_handle) X(get_session_handle_v2) X(get_session_tensor) \
    X(delete_session_tensor)

#define OPS_STAGE(X) \
    X(stage) X(unstage) X(stage_peek) X(stage_size) X(stage_clear)

#define OPS_MUTEX(X) \
    X(mutex_v2) X(mutex_lock) X(consume_mutex_lock)
