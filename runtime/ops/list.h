/*
 * list.h - every op, one row each, grouped by the file that defines it.
 *
 * To add an op: a constant `const struct op op_NAME` in the file of its family, and a row here.
 */
#pragma once

#include "runtime/ops/list_dataset.h"
#include "runtime/ops/list_rare.h"
#include "runtime/ops/list_resource.h"

/* clang-format off */

#define OPS_FRAMEWORK(X) \
    X(no_op) X(control_trigger) X(const) X(placeholder) X(placeholder_v2) \
    X(placeholder_with_default) X(identity) X(identity_n) X(stop_gradient) \
    X(prevent_gradient) X(check_numerics) X(assert)

#define OPS_STATE(X) \
    X(variable_v2) X(variable) X(assign) X(assign_add) X(assign_sub) \
    X(is_variable_initialized) X(count_up_to) X(resource_count_up_to) X(var_handle_op) \
    X(read_variable_op) X(assign_variable_op) X(assign_add_variable_op) \
    X(assign_sub_variable_op) X(var_is_initialized_op) X(variable_shape) \
    X(destroy_resource_op) X(disable_copy_on_read) X(temporary_variable) X(destroy_temporary_variable)

#define OPS_MATH(X) \
    X(add) X(add_v2) X(sub) X(mul) X(mul_no_nan) X(real_div) X(div) X(div_no_nan) \
    X(floor_div) X(truncate_div) X(truncate_mod) X(floor_mod) X(maximum) X(minimum) \
    X(squared_difference) X(pow) X(xdivy) X(sigmoid_grad) X(tanh_grad) X(sqrt_grad) \
    X(rsqrt_grad) X(reciprocal_grad) X(add_n) X(accumulate_nv2) X(clip_by_value)

#define OPS_UNARY(X) \
    X(neg) X(conj) X(abs) X(sign) X(square) X(sqrt) X(rsqrt) X(reciprocal) X(exp) X(expm1) \
    X(log) X(log1p) X(sigmoid) X(tanh) X(sin) X(cos) X(erf) X(floor) X(ceil) X(round) \
    X(rint) X(is_nan) X(is_inf) X(is_finite) X(logical_not) X(cast) \
    X(acos) X(asin) X(atan) X(atanh) X(acosh) X(asinh) X(cosh) X(sinh) X(tan) X(erfc) \
    X(erfinv) X(ndtri) X(lgamma) X(digamma) X(inv) X(inv_grad) X(atan2) X(xlogy) X(xlog1py) \
    X(next_after) X(zeta) X(polygamma) X(mod) X(bitwise_and) X(bitwise_or) X(bitwise_xor) X(left_shift) \
    X(right_shift) X(invert) X(population_count) X(approximate_equal) X(real) X(imag) \
    X(angle) X(complex_abs) X(complex)

#define OPS_COMPARE(X) \
    X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal) X(logical_and) \
    X(logical_or) X(select) X(select_v2)

#define OPS_MATRIX(X) \
    X(einsum) \
    X(mat_mul) X(sparse_mat_mul) X(batch_mat_mul) X(batch_mat_mul_v2) X(batch_mat_mul_v3) \
    X(matrix_diag) X(matrix_diag_v2) X(matrix_diag_v3) X(matrix_diag_part) \
    X(matrix_diag_part_v2) X(matrix_diag_part_v3) X(matrix_set_diag) X(matrix_set_diag_v2) \
    X(matrix_set_diag_v3) X(diag) X(diag_part) \
    X(matrix_inverse) X(matrix_determinant) X(log_matrix_determinant) X(matrix_solve) \
    X(matrix_triangular_solve) X(cholesky)

#define OPS_REDUCE(X) \
    X(sum) X(mean) X(prod) X(max) X(min) X(all) X(any) X(arg_max) X(arg_min) X(l2_loss) \
    X(cumsum) X(cumprod)

#define OPS_SEGMENT(X) \
    X(segment_sum) X(segment_mean) X(unsorted_segment_sum) X(sparse_segment_sum) \
    X(sparse_segment_mean) X(sparse_segment_sqrt_n) X(sparse_segment_sum_grad) \
    X(sparse_segment_mean_grad) X(sparse_segment_sqrt_n_grad) \
    X(segment_max) X(segment_min) X(segment_prod) X(unsorted_segment_max) \
    X(unsorted_segment_min) X(unsorted_segment_prod) \
    X(sparse_segment_sum_with_num_segments) X(sparse_segment_mean_with_num_segments) \
    X(sparse_segment_sqrt_n_with_num_segments)

#define OPS_ARRAY(X) \
    X(shape) X(shape_n) X(size) X(rank) X(broadcast_gradient_args) X(broadcast_args) \
    X(reshape) X(squeeze) X(expand_dims) X(bitcast) X(fill) X(zeros_like) X(ones_like) \
    X(broadcast_to) X(range) X(lin_space) X(invert_permutation) X(one_hot) X(where) \
    X(matrix_band_part)

#define OPS_SLICE(X) \
    X(pack) X(unpack) X(concat_v2) X(concat) X(concat_offset) X(split) X(split_v) X(slice) \
    X(strided_slice) X(strided_slice_grad)

#define OPS_LAYOUT(X) \
    X(transpose) X(tile) X(pad) X(pad_v2) X(mirror_pad) X(mirror_pad_grad) X(reverse_v2) \
    X(reverse_sequence) X(space_to_depth) X(depth_to_space) \
    X(space_to_batch) X(space_to_batch_nd) X(batch_to_space) X(batch_to_space_nd) X(roll) \
    X(extract_image_patches) X(ensure_shape) X(snapshot) X(guarantee_const)

#define OPS_GATHER(X) \
    X(gather) X(gather_v2) X(resource_gather) X(gather_nd) X(resource_gather_nd) X(scatter_nd) \
    X(dynamic_partition) X(dynamic_stitch) X(parallel_dynamic_stitch) X(unique) \
    X(unique_with_counts) X(list_diff) X(top_k_v2) X(top_k) X(in_top_k) X(in_top_k_v2) \
    X(sparse_to_dense) \
    X(tensor_scatter_update) X(tensor_scatter_add) X(tensor_scatter_sub) \
    X(tensor_scatter_max) X(tensor_scatter_min) X(scatter_nd_non_aliasing_add)

#define OPS_SCATTER(X) \
    X(scatter_update) X(scatter_add) X(scatter_sub) X(scatter_mul) X(scatter_div) \
    X(scatter_min) X(scatter_max) X(resource_scatter_update) X(resource_scatter_add) \
    X(resource_scatter_sub) X(resource_scatter_mul) X(resource_scatter_div) \
    X(resource_scatter_min) X(resource_scatter_max) X(scatter_nd_update) X(scatter_nd_add) \
    X(scatter_nd_sub) X(resource_scatter_nd_update) X(resource_scatter_nd_add) \
    X(resource_scatter_nd_sub) X(resource_scatter_nd_min) X(resource_scatter_nd_max) \
    X(scatter_nd_min) X(scatter_nd_max) X(strided_slice_assign) \
    X(resource_strided_slice_assign) X(tensor_strided_slice_update)

#define OPS_NN(X) \
    X(relu) X(relu6) X(elu) X(selu) X(softplus) X(softsign) X(leaky_relu) X(relu_grad) \
    X(relu6_grad) X(elu_grad) X(selu_grad) X(softplus_grad) X(softsign_grad) \
    X(leaky_relu_grad) X(bias_add) X(bias_add_grad) X(softmax) X(log_softmax) \
    X(softmax_cross_entropy_with_logits) X(sparse_softmax_cross_entropy_with_logits) \
    X(lrn) X(lrn_grad)

#define OPS_CONV(X) \
    X(conv2d) X(conv2d_backprop_input) X(conv2d_backprop_filter) X(depthwise_conv2d_native) \
    X(depthwise_conv2d_native_backprop_input) X(depthwise_conv2d_native_backprop_filter) \
    X(conv3d) X(conv3d_backprop_input) X(conv3d_backprop_filter) \
    X(conv3d_backprop_input_v2) X(conv3d_backprop_filter_v2)

#define OPS_POOL(X) \
    X(max_pool) X(max_pool_grad) X(avg_pool) X(avg_pool_grad) X(max_pool_v2) \
    X(max_pool_grad_v2) X(max_pool_grad_grad) X(max_pool_grad_grad_v2) \
    X(max_pool_with_argmax) X(max_pool_grad_with_argmax) X(max_pool3d) X(max_pool3d_grad) \
    X(max_pool3d_grad_grad) X(avg_pool3d) X(avg_pool3d_grad)

#define OPS_BATCH_NORM(X) \
    X(fused_batch_norm) X(fused_batch_norm_v2) X(fused_batch_norm_v3) \
    X(fused_batch_norm_grad) X(fused_batch_norm_grad_v2) X(fused_batch_norm_grad_v3)

#define OPS_RANDOM(X) \
    X(random_uniform) X(random_standard_normal) X(truncated_normal) X(random_uniform_int) \
    X(random_shuffle) X(stateless_random_uniform) X(stateless_random_normal) \
    X(stateless_truncated_normal) X(stateless_random_uniform_v2) \
    X(stateless_random_normal_v2) X(stateless_truncated_normal_v2) \
    X(stateless_random_uniform_int) X(stateless_random_uniform_int_v2) \
    X(stateless_random_uniform_full_int) X(stateless_random_uniform_full_int_v2) \
    X(stateless_random_get_alg) X(stateless_random_get_key_counter) \
    X(stateless_random_get_key_counter_alg) X(random_gamma) X(random_gamma_grad) \
    X(stateless_random_gamma_v2) X(stateless_random_gamma_v3) X(random_poisson) \
    X(random_poisson_v2) X(stateless_random_poisson) X(stateless_random_binomial) \
    X(multinomial) X(stateless_multinomial) X(parameterized_truncated_normal) \
    X(random_crop) X(stateful_uniform) X(stateful_standard_normal_v2) \
    X(stateful_truncated_normal) X(stateful_uniform_int) X(stateful_uniform_full_int) \
    X(stateful_random_binomial) X(rng_skip) X(rng_read_and_skip) X(non_deterministic_ints)

#define OPS_TRAINING(X) \
    X(apply_ada_max) X(resource_apply_ada_max) X(apply_adadelta) X(resource_apply_adadelta) \
    X(apply_adagrad) X(resource_apply_adagrad) X(apply_adagrad_da) \
    X(resource_apply_adagrad_da) X(apply_adagrad_v2) X(resource_apply_adagrad_v2) \
    X(apply_adam) X(resource_apply_adam) X(resource_apply_adam_with_amsgrad) \
    X(apply_add_sign) X(resource_apply_add_sign) X(apply_centered_rms_prop) \
    X(resource_apply_centered_rms_prop) X(apply_ftrl) X(resource_apply_ftrl) \
    X(apply_ftrl_v2) X(resource_apply_ftrl_v2) X(apply_gradient_descent) \
    X(resource_apply_gradient_descent) X(resource_apply_keras_momentum) X(apply_momentum) \
    X(resource_apply_momentum) X(apply_power_sign) X(resource_apply_power_sign) \
    X(apply_proximal_adagrad) X(resource_apply_proximal_adagrad) \
    X(apply_proximal_gradient_descent) X(resource_apply_proximal_gradient_descent) \
    X(apply_rms_prop) X(resource_apply_rms_prop)

#define OPS_TRAINING_SPARSE(X) \
    X(resource_sparse_apply_adadelta) X(sparse_apply_adadelta) \
    X(resource_sparse_apply_adagrad) X(sparse_apply_adagrad) \
    X(resource_sparse_apply_adagrad_da) X(sparse_apply_adagrad_da) \
    X(resource_sparse_apply_adagrad_v2) X(sparse_apply_adagrad_v2) \
    X(resource_sparse_apply_centered_rms_prop) X(sparse_apply_centered_rms_prop) \
    X(resource_sparse_apply_ftrl) X(sparse_apply_ftrl) X(resource_sparse_apply_ftrl_v2) \
    X(sparse_apply_ftrl_v2) X(resource_sparse_apply_keras_momentum) \
    X(resource_sparse_apply_momentum) X(sparse_apply_momentum) \
    X(resource_sparse_apply_proximal_adagrad) X(sparse_apply_proximal_adagrad) \
    X(resource_sparse_apply_proximal_gradient_descent) \
    X(sparse_apply_proximal_gradient_descent) X(resource_sparse_apply_rms_prop) \
    X(sparse_apply_rms_prop)

#define OPS_FILES(X) \
    X(save) X(save_slices) X(restore) X(restore_slice) X(save_v2) X(restore_v2) X(merge_v2_checkpoints) X(sharded_filename) X(string_join) \
    X(matching_files) X(read_file) X(write_file)

#define OPS_SUMMARY(X) \
    X(scalar_summary) X(merge_summary) X(histogram_summary) X(tensor_summary) \
    X(tensor_summary_v2) X(image_summary) X(audio_summary) X(audio_summary_v2) \
    X(summary_writer) X(create_summary_file_writer) X(flush_summary_writer) \
    X(close_summary_writer) X(write_summary) X(write_raw_proto_summary) \
    X(write_scalar_summary) X(write_histogram_summary) X(write_image_summary) \
    X(write_audio_summary) X(write_graph_summary) X(import_event)

#define OPS_FUSED(X) \
    X(fused_mat_mul) X(fused_conv2d) X(relu_bias_grad) X(max_pool_relu_bias_grad) \
    X(mat_mul_descent) X(elementwise) X(update_refs) X(update_resources) X(fused_batch_norm_ex) \
    X(fused_batch_norm_grad_ex) \
    X(fused_softmax_grad) X(fused_log_softmax_grad) X(fused_cross_entropy) X(fused_softmax_losses) \
    X(lookup_block_lstm) X(lookup_block_lstm_v2) X(lookup_block_lstm_grad) \
    X(lookup_block_lstm_grad_v2) X(lookup_gru_sequence) X(lookup_gru_sequence_grad) \
    X(lookup_rnn_sequence) X(lookup_rnn_sequence_grad) \
    X(gru_sequence) X(gru_sequence_grad) X(rnn_sequence) X(rnn_sequence_grad) \
    X(layer_norm) X(layer_norm_grad) X(gelu) X(attention) X(attention_grad)

#define OPS_CONTROL_FLOW(X) \
    X(switch) X(ref_switch) X(switch_n) X(merge) X(ref_merge) X(enter) X(ref_enter) X(exit) \
    X(ref_exit) X(next_iteration) X(ref_next_iteration) X(loop_cond) X(ref_identity) \
    X(ref_select) X(abort) X(print) X(print_v2)

#define OPS_FUNCTIONAL(X) \
    X(if) X(stateless_if) X(case) X(stateless_case) X(while) X(stateless_while) X(for) \
    X(partitioned_call) X(stateful_partitioned_call) X(remote_call) X(symbolic_gradient) \
    X(to_bool) X(fake_param)

#define OPS_TENSOR_ARRAY(X) \
    X(stack_v2) X(stack_push_v2) X(stack_pop_v2) X(stack_grad) X(stack_close_v2) X(tensor_array_v3) \
    X(tensor_array_grad_v3) X(tensor_array_grad_with_shape) X(tensor_array_write_v3) \
    X(tensor_array_read_v3) X(tensor_array_gather_v3) X(tensor_array_scatter_v3) \
    X(tensor_array_concat_v3) X(tensor_array_split_v3) X(tensor_array_size_v3) \
    X(tensor_array_close_v3)

#define OPS_TENSOR_LIST(X) \
    X(empty_tensor_list) X(tensor_list_reserve) X(tensor_list_length) \
    X(tensor_list_element_shape) X(tensor_list_push_back) X(tensor_list_push_back_batch) \
    X(tensor_list_pop_back) X(tensor_list_get_item) X(tensor_list_set_item) \
    X(tensor_list_resize) X(tensor_list_stack) X(tensor_list_from_tensor) \
    X(tensor_list_gather) X(tensor_list_scatter) X(tensor_list_scatter_v2) \
    X(tensor_list_scatter_into_existing_list) X(tensor_list_concat) \
    X(tensor_list_concat_v2) X(tensor_list_split) X(tensor_list_concat_lists)

#define OPS_STRING(X) \
    X(as_string) X(string_to_number) X(string_to_hash_bucket) X(string_to_hash_bucket_fast) \
    X(string_to_hash_bucket_strong) X(fingerprint) X(string_strip) X(string_lower) \
    X(string_upper) X(string_length) X(encode_base64) X(decode_base64) X(substr) \
    X(regex_full_match) X(static_regex_full_match) X(regex_replace) X(static_regex_replace) \
    X(string_split) X(string_split_v2) X(reduce_join) X(unsorted_segment_join) \
    X(string_format) X(string_n_grams) X(unicode_script) X(unicode_transcode) \
    X(unicode_decode) X(unicode_decode_with_offsets) X(unicode_encode)

#define OPS_PARSE(X) \
    X(parse_example) X(parse_example_v2) X(parse_single_example) X(parse_sequence_example) \
    X(parse_sequence_example_v2) X(parse_single_sequence_example) X(decode_raw) \
    X(decode_padded_raw) X(decode_csv) X(parse_tensor) X(serialize_tensor) \
    X(decode_compressed) X(decode_json_example)

#define OPS_IMAGE(X) \
    X(resize_bilinear) X(resize_bicubic) X(resize_nearest_neighbor) X(resize_area) \
    X(resize_bilinear_grad) X(resize_bicubic_grad) X(resize_nearest_neighbor_grad) \
    X(crop_and_resize) X(crop_and_resize_grad_image) X(crop_and_resize_grad_boxes) \
    X(adjust_contrastv2) X(adjust_hue) X(adjust_saturation) X(rgb_to_hsv) X(hsv_to_rgb) \
    X(decode_png) X(decode_jpeg) X(decode_bmp) X(decode_gif) X(decode_image) \
    X(sample_distorted_bounding_box) X(sample_distorted_bounding_box_v2) \
    X(non_max_suppression) X(non_max_suppression_v2) X(non_max_suppression_v3) \
    X(non_max_suppression_v4) X(non_max_suppression_v5) \
    X(extract_jpeg_shape) X(encode_png) X(encode_jpeg) X(encode_jpeg_variable_quality)

#define OPS_SPARSE(X) \
    X(sparse_fill_empty_rows) X(sparse_fill_empty_rows_grad) X(sparse_reshape) \
    X(sparse_reorder) X(sparse_slice) X(sparse_slice_grad) X(sparse_concat) X(sparse_split) \
    X(sparse_cross) X(sparse_cross_v2) X(sparse_cross_hashed) X(edit_distance) \
    X(sparse_reduce_sum) X(sparse_reduce_max) X(sparse_reduce_sum_sparse) \
    X(sparse_reduce_max_sparse) X(sparse_softmax) \
    X(sparse_segment_sum_grad_v2) X(sparse_segment_mean_grad_v2) \
    X(sparse_segment_sqrt_n_grad_v2) X(sparse_tensor_dense_mat_mul) \
    X(sparse_tensor_dense_add) X(sparse_dense_cwise_add) X(sparse_dense_cwise_mul) \
    X(sparse_dense_cwise_div) X(sparse_add) X(sparse_add_grad) X(sparse_sparse_maximum) \
    X(sparse_sparse_minimum)

#define OPS_SAMPLER(X) \
    X(all_candidate_sampler) X(uniform_candidate_sampler) X(log_uniform_candidate_sampler) \
    X(learned_unigram_candidate_sampler) X(thread_unsafe_unigram_candidate_sampler) \
    X(fixed_unigram_candidate_sampler) X(compute_accidental_hits)

#define OPS_RNN(X) \
    X(lstm_block_cell) X(lstm_block_cell_grad) X(block_lstm) X(block_lstm_v2) \
    X(block_lstm_grad) X(block_lstm_grad_v2) X(gru_block_cell) X(gru_block_cell_grad)

#define OPS_TRANSFER(X) X(send) X(recv) X(host_send) X(host_recv)

#define OPS_LIST(X) \
    OPS_FRAMEWORK(X) OPS_STATE(X) OPS_MATH(X) OPS_UNARY(X) OPS_COMPARE(X) OPS_MATRIX(X) \
    OPS_REDUCE(X) OPS_SEGMENT(X) OPS_ARRAY(X) OPS_SLICE(X) OPS_LAYOUT(X) OPS_GATHER(X) \
    OPS_SCATTER(X) OPS_NN(X) OPS_CONV(X) OPS_POOL(X) OPS_BATCH_NORM(X) OPS_RANDOM(X) OPS_TRAINING(X) \
    OPS_TRAINING_SPARSE(X) OPS_FILES(X) OPS_SUMMARY(X) OPS_FUSED(X) \
    OPS_CONTROL_FLOW(X) OPS_FUNCTIONAL(X) OPS_QUEUE(X) OPS_TABLE(X) OPS_TENSOR_ARRAY(X) OPS_TENSOR_LIST(X) \
    OPS_SESSION(X) OPS_DATASET(X) OPS_STRING(X) OPS_PARSE(X) OPS_READER(X) OPS_STAGE(X) OPS_MUTEX(X) OPS_IMAGE(X) \
    OPS_SPARSE(X) OPS_SAMPLER(X) OPS_RNN(X) OPS_TRANSFER(X) OPS_RARE(X)
