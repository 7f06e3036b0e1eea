/*
 * list.h - What keeps state: control flow, queues, tables, tensor arrays, lists, accumulators.
 *
 * Each has one kernel, which is its own reference; a row each, grouped by file.
 */
#pragma once

/* clang-format off */

#define KERNELS_OF_STATE(X) \
    KERNELS_OF_STACK(X) \
    KERNELS_OF_TENSOR_ARRAY(X) \
    KERNELS_OF_TENSOR_LIST(X)

#define KERNELS_OF_STACK(X) \
    X(stack_v2) X(stack_push_v2) X(stack_pop_v2) X(stack_close_v2)

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
