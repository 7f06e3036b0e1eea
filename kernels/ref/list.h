/*
 * list.h - the plain C kernels, one row each, grouped by the file that defines them.
 *
 * To add one: a constant `const struct kernel kernel_NAME_ref` in the file of its family, and a
 * row here.
 */
#pragma once

#include "kernels/ref/list_rare.h"

/* clang-format off */

#define KERNELS_ACTIVATION(X) \
    X(relu_ref) X(relu6_ref) X(elu_ref) X(selu_ref) X(leaky_relu_ref) X(softplus_ref) \
    X(softsign_ref) X(relu_grad_ref) X(relu6_grad_ref) X(elu_grad_ref) X(selu_grad_ref) \
    X(leaky_relu_grad_ref) X(softplus_grad_ref) X(softsign_grad_ref)

#define KERNELS_ALONG(X) \
    X(arg_max_ref) X(arg_min_ref) X(cumsum_ref) X(cumprod_ref) X(l2_loss_ref)

#define KERNELS_BATCH_NORM(X) \
    X(fused_batch_norm_ref) X(fused_batch_norm_v2_ref) X(fused_batch_norm_v3_ref) \
    X(fused_batch_norm_grad_ref) X(fused_batch_norm_grad_v2_ref) \
    X(fused_batch_norm_grad_v3_ref)

#define KERNELS_BINARY(X) \
    X(add_ref) X(add_v2_ref) X(sub_ref) X(mul_ref) X(mul_no_nan_ref) X(real_div_ref) \
    X(div_ref) X(div_no_nan_ref) X(xdivy_ref) X(floor_div_ref) X(truncate_div_ref) \
    X(floor_mod_ref) X(truncate_mod_ref) X(maximum_ref) X(minimum_ref) \
    X(squared_difference_ref) X(pow_ref) X(sigmoid_grad_ref) X(tanh_grad_ref) \
    X(sqrt_grad_ref) X(rsqrt_grad_ref) X(reciprocal_grad_ref)

#define KERNELS_COMPARE(X) \
    X(equal_ref) X(not_equal_ref) X(less_ref) X(less_equal_ref) X(greater_ref) \
    X(greater_equal_ref) X(logical_and_ref) X(logical_or_ref)

#define KERNELS_CONV(X) \
    X(conv2d_ref) X(conv2d_backprop_input_ref) X(conv2d_backprop_filter_ref) \
    X(depthwise_conv2d_native_ref) X(depthwise_conv2d_native_backprop_input_ref) \
    X(depthwise_conv2d_native_backprop_filter_ref) X(conv3d_ref) \
    X(conv3d_backprop_input_ref) X(conv3d_backprop_filter_ref) \
    X(conv3d_backprop_input_v2_ref) X(conv3d_backprop_filter_v2_ref)

#define KERNELS_FILES(X) \
    X(save_ref) X(save_slices_ref) X(restore_ref) X(restore_slice_ref) X(save_v2_ref) X(restore_v2_ref) X(merge_v2_checkpoints_ref) X(matching_files_ref) \
    X(read_file_ref) X(write_file_ref)

#define KERNELS_FILL(X) \
    X(fill_ref) X(zeros_like_ref) X(ones_like_ref) X(broadcast_to_ref) X(range_ref) \
    X(lin_space_ref) X(invert_permutation_ref) X(one_hot_ref) X(matrix_band_part_ref) \
    X(where_ref)

#define KERNELS_FRAMEWORK(X) \
    X(no_op_ref) X(control_trigger_ref) X(const_ref) X(placeholder_ref) \
    X(placeholder_v2_ref) X(placeholder_with_default_ref) X(identity_ref) X(identity_n_ref) \
    X(stop_gradient_ref) X(prevent_gradient_ref) X(check_numerics_ref) X(assert_ref)

#define KERNELS_GATHER(X) \
    X(gather_ref) X(gather_v2_ref) X(resource_gather_ref) X(gather_nd_ref) \
    X(scatter_nd_ref) X(resource_gather_nd_ref) \
    X(tensor_scatter_update_ref) X(tensor_scatter_add_ref) X(tensor_scatter_sub_ref) \
    X(tensor_scatter_max_ref) X(tensor_scatter_min_ref) X(scatter_nd_non_aliasing_add_ref)

#define KERNELS_JOIN(X) \
    X(concat_v2_ref) X(concat_ref) X(concat_offset_ref) X(pack_ref) X(unpack_ref) \
    X(split_ref) X(split_v_ref)

#define KERNELS_LAYOUT(X) \
    X(transpose_ref) X(tile_ref) X(pad_ref) X(pad_v2_ref) X(mirror_pad_ref) \
    X(mirror_pad_grad_ref) X(reverse_v2_ref) X(reverse_sequence_ref) X(space_to_depth_ref) \
    X(depth_to_space_ref) \
    X(space_to_batch_ref) X(space_to_batch_nd_ref) X(batch_to_space_ref) \
    X(batch_to_space_nd_ref) X(roll_ref) X(extract_image_patches_ref) X(ensure_shape_ref) \
    X(snapshot_ref) X(guarantee_const_ref)

#define KERNELS_MAT_MUL(X) \
    X(einsum_ref) \
    X(mat_mul_ref) X(sparse_mat_mul_ref) X(batch_mat_mul_ref) X(batch_mat_mul_v2_ref) \
    X(batch_mat_mul_v3_ref) \
    X(matrix_inverse_ref) X(matrix_determinant_ref) X(log_matrix_determinant_ref) \
    X(matrix_solve_ref) X(matrix_triangular_solve_ref) X(cholesky_ref) \
    X(batch_matrix_inverse_ref) X(batch_matrix_determinant_ref) X(batch_matrix_solve_ref) \
    X(batch_matrix_triangular_solve_ref) X(batch_cholesky_ref)

#define KERNELS_NN(X) \
    X(bias_add_ref) X(bias_add_grad_ref) X(softmax_ref) X(log_softmax_ref) \
    X(softmax_cross_entropy_with_logits_ref) \
    X(sparse_softmax_cross_entropy_with_logits_ref) X(lrn_ref) X(lrn_grad_ref)

#define KERNELS_OPTIMIZER(X) \
    X(apply_ada_max_ref) X(resource_apply_ada_max_ref) X(apply_adadelta_ref) \
    X(resource_apply_adadelta_ref) X(apply_adagrad_ref) X(resource_apply_adagrad_ref) \
    X(apply_adagrad_da_ref) X(resource_apply_adagrad_da_ref) X(apply_adagrad_v2_ref) \
    X(resource_apply_adagrad_v2_ref) X(apply_adam_ref) X(resource_apply_adam_ref) \
    X(resource_apply_adam_with_amsgrad_ref) X(apply_add_sign_ref) \
    X(resource_apply_add_sign_ref) X(apply_centered_rms_prop_ref) \
    X(resource_apply_centered_rms_prop_ref) X(apply_ftrl_ref) X(resource_apply_ftrl_ref) \
    X(apply_ftrl_v2_ref) X(resource_apply_ftrl_v2_ref) X(apply_gradient_descent_ref) \
    X(resource_apply_gradient_descent_ref) X(resource_apply_keras_momentum_ref) \
    X(apply_momentum_ref) X(resource_apply_momentum_ref) X(apply_power_sign_ref) \
    X(resource_apply_power_sign_ref) X(apply_proximal_adagrad_ref) \
    X(apply_proximal_gradient_descent_ref) X(apply_rms_prop_ref) \
    X(resource_apply_rms_prop_ref) X(resource_sparse_apply_adadelta_ref) \
    X(sparse_apply_adadelta_ref) X(sparse_apply_adagrad_ref) \
    X(resource_sparse_apply_adagrad_da_ref) X(sparse_apply_adagrad_da_ref) \
    X(resource_sparse_apply_adagrad_v2_ref) X(resource_sparse_apply_centered_rms_prop_ref) \
    X(sparse_apply_centered_rms_prop_ref) X(resource_sparse_apply_ftrl_ref) \
    X(sparse_apply_ftrl_ref) X(resource_sparse_apply_ftrl_v2_ref) \
    X(sparse_apply_ftrl_v2_ref) X(resource_sparse_apply_keras_momentum_ref) \
    X(resource_sparse_apply_momentum_ref) X(resource_sparse_apply_proximal_adagrad_ref) \
    X(resource_sparse_apply_proximal_gradient_descent_ref) \
    X(sparse_apply_proximal_gradient_descent_ref) X(resource_sparse_apply_rms_prop_ref) \
    X(sparse_apply_rms_prop_ref) X(resource_apply_proximal_adagrad_ref) \
    X(resource_apply_proximal_gradient_descent_ref) X(resource_sparse_apply_adagrad_ref) \
    X(sparse_apply_adagrad_v2_ref) X(sparse_apply_momentum_ref) \
    X(sparse_apply_proximal_adagrad_ref)

#define KERNELS_PARTITION(X) \
    X(dynamic_partition_ref) X(dynamic_stitch_ref) X(parallel_dynamic_stitch_ref) \
    X(sparse_to_dense_ref)

#define KERNELS_POOL(X) \
    X(max_pool_ref) X(max_pool_grad_ref) X(avg_pool_ref) X(avg_pool_grad_ref) \
    X(max_pool_v2_ref) X(max_pool_grad_v2_ref) X(max_pool_grad_grad_ref) \
    X(max_pool_grad_grad_v2_ref) X(max_pool_with_argmax_ref) \
    X(max_pool_grad_with_argmax_ref) X(max_pool3d_ref) X(max_pool3d_grad_ref) \
    X(max_pool3d_grad_grad_ref) X(avg_pool3d_ref) X(avg_pool3d_grad_ref)

#define KERNELS_RANDOM(X) \
    X(random_uniform_ref) X(random_standard_normal_ref) X(truncated_normal_ref) \
    X(random_uniform_int_ref) X(random_shuffle_ref) X(stateless_random_uniform_ref) \
    X(stateless_random_normal_ref) X(stateless_truncated_normal_ref) \
    X(stateless_random_uniform_v2_ref) X(stateless_random_normal_v2_ref) \
    X(stateless_truncated_normal_v2_ref) X(stateless_random_uniform_int_ref) \
    X(stateless_random_uniform_int_v2_ref) X(stateless_random_uniform_full_int_ref) \
    X(stateless_random_uniform_full_int_v2_ref) X(stateless_random_get_alg_ref) \
    X(stateless_random_get_key_counter_ref) X(stateless_random_get_key_counter_alg_ref) \
    X(random_crop_ref)

#define KERNELS_RANDOM_GAMMA(X) \
    X(random_gamma_ref) X(stateless_random_gamma_v2_ref) X(stateless_random_gamma_v3_ref) \
    X(random_gamma_grad_ref)

#define KERNELS_RANDOM_POISSON(X) \
    X(random_poisson_ref) X(random_poisson_v2_ref) X(stateless_random_poisson_ref) \
    X(stateless_random_binomial_ref) X(stateful_random_binomial_ref)

#define KERNELS_RANDOM_CATEGORICAL(X) X(multinomial_ref) X(stateless_multinomial_ref)

#define KERNELS_RANDOM_TRUNCATED(X) X(parameterized_truncated_normal_ref)

#define KERNELS_RANDOM_STATE(X) \
    X(stateful_uniform_ref) X(stateful_standard_normal_v2_ref) \
    X(stateful_truncated_normal_ref) X(stateful_uniform_int_ref) \
    X(stateful_uniform_full_int_ref) X(rng_skip_ref) X(rng_read_and_skip_ref) \
    X(non_deterministic_ints_ref)

#define KERNELS_SPARSE(X) \
    X(sparse_fill_empty_rows_ref) X(sparse_fill_empty_rows_grad_ref) X(sparse_reshape_ref) \
    X(sparse_reorder_ref) X(sparse_slice_ref) X(sparse_split_ref) X(sparse_slice_grad_ref) \
    X(sparse_concat_ref) X(sparse_tensor_dense_mat_mul_ref) \
    X(sparse_tensor_dense_add_ref) X(sparse_dense_cwise_add_ref) \
    X(sparse_dense_cwise_mul_ref) X(sparse_dense_cwise_div_ref) X(sparse_add_ref) \
    X(sparse_add_grad_ref) X(sparse_sparse_maximum_ref) X(sparse_sparse_minimum_ref) \
    X(sparse_reduce_sum_ref) X(sparse_reduce_max_ref) X(sparse_reduce_sum_sparse_ref) \
    X(sparse_reduce_max_sparse_ref) X(sparse_softmax_ref) X(edit_distance_ref) \
    X(sparse_cross_ref) X(sparse_cross_v2_ref) X(sparse_cross_hashed_ref) \
    X(sparse_segment_sum_grad_v2_ref) \
    X(sparse_segment_mean_grad_v2_ref) X(sparse_segment_sqrt_n_grad_v2_ref)

#define KERNELS_SAMPLER(X) \
    X(all_candidate_sampler_ref) X(uniform_candidate_sampler_ref) \
    X(log_uniform_candidate_sampler_ref) X(learned_unigram_candidate_sampler_ref) \
    X(thread_unsafe_unigram_candidate_sampler_ref) X(fixed_unigram_candidate_sampler_ref) \
    X(compute_accidental_hits_ref)

#define KERNELS_REDUCE(X) \
    X(sum_ref) X(mean_ref) X(prod_ref) X(max_ref) X(min_ref) X(all_ref) X(any_ref)

#define KERNELS_SCATTER(X) \
    X(scatter_update_ref) X(scatter_add_ref) X(scatter_sub_ref) X(scatter_mul_ref) \
    X(scatter_div_ref) X(scatter_min_ref) X(scatter_max_ref) X(resource_scatter_update_ref) \
    X(resource_scatter_add_ref) X(resource_scatter_sub_ref) X(resource_scatter_mul_ref) \
    X(resource_scatter_div_ref) X(resource_scatter_min_ref) X(resource_scatter_max_ref) \
    X(scatter_nd_update_ref) X(scatter_nd_add_ref) X(scatter_nd_sub_ref) \
    X(resource_scatter_nd_update_ref) X(resource_scatter_nd_add_ref) \
    X(resource_scatter_nd_sub_ref) X(resource_scatter_nd_min_ref) \
    X(resource_scatter_nd_max_ref) X(scatter_nd_min_ref) X(scatter_nd_max_ref) \
    X(strided_slice_assign_ref) X(resource_strided_slice_assign_ref) \
    X(tensor_strided_slice_update_ref)

#define KERNELS_SEGMENT(X) \
    X(segment_sum_ref) X(segment_mean_ref) X(unsorted_segment_sum_ref) \
    X(sparse_segment_sum_ref) X(sparse_segment_mean_ref) X(sparse_segment_sqrt_n_ref) \
    X(sparse_segment_sum_grad_ref) X(sparse_segment_mean_grad_ref) \
    X(sparse_segment_sqrt_n_grad_ref) X(segment_prod_ref) X(segment_max_ref) \
    X(segment_min_ref) X(unsorted_segment_prod_ref) X(unsorted_segment_max_ref) \
    X(unsorted_segment_min_ref) X(sparse_segment_sum_with_num_segments_ref) \
    X(sparse_segment_mean_with_num_segments_ref) \
    X(sparse_segment_sqrt_n_with_num_segments_ref)

#define KERNELS_SELECT(X) \
    X(select_ref) X(select_v2_ref) X(clip_by_value_ref) X(cast_ref) X(add_n_ref) \
    X(accumulate_nv2_ref)

#define KERNELS_SETS(X) \
    X(unique_ref) X(unique_with_counts_ref) X(unique_v2_ref) X(unique_with_counts_v2_ref) \
    X(list_diff_ref) X(top_k_ref) X(top_k_v2_ref) \
    X(in_top_k_ref) X(in_top_k_v2_ref)

#define KERNELS_SHAPES(X) \
    X(shape_ref) X(shape_n_ref) X(size_ref) X(rank_ref) X(broadcast_args_ref) \
    X(broadcast_gradient_args_ref) X(reshape_ref) X(squeeze_ref) X(expand_dims_ref) \
    X(bitcast_ref)

#define KERNELS_SLICE(X) \
    X(slice_ref) X(strided_slice_ref) X(strided_slice_grad_ref)

#define KERNELS_STATE(X) \
    X(variable_v2_ref) X(variable_ref) X(var_handle_op_ref) X(assign_ref) \
    X(assign_variable_op_ref) X(read_variable_op_ref) X(is_variable_initialized_ref) \
    X(var_is_initialized_op_ref) X(assign_add_ref) X(assign_sub_ref) \
    X(assign_add_variable_op_ref) X(assign_sub_variable_op_ref) X(count_up_to_ref) \
    X(resource_count_up_to_ref) X(variable_shape_ref) X(destroy_resource_op_ref) \
    X(temporary_variable_ref) X(destroy_temporary_variable_ref) X(disable_copy_on_read_ref)

#define KERNELS_UNARY(X) \
    X(neg_ref) X(conj_ref) X(abs_ref) X(sign_ref) X(square_ref) X(sqrt_ref) X(rsqrt_ref) \
    X(reciprocal_ref) X(exp_ref) X(expm1_ref) X(log_ref) X(log1p_ref) X(sigmoid_ref) \
    X(tanh_ref) X(sin_ref) X(cos_ref) X(erf_ref) X(floor_ref) X(ceil_ref) X(round_ref) \
    X(rint_ref) X(is_nan_ref) X(is_inf_ref) X(is_finite_ref) X(logical_not_ref)

#define KERNELS_DIAGONAL(X) \
    X(matrix_diag_ref) X(matrix_diag_v2_ref) X(matrix_diag_v3_ref) X(matrix_diag_part_ref) \
    X(matrix_diag_part_v2_ref) X(matrix_diag_part_v3_ref) X(matrix_set_diag_ref) \
    X(matrix_set_diag_v2_ref) X(matrix_set_diag_v3_ref) X(diag_ref) X(diag_part_ref)

#define KERNELS_IMAGE(X) \
    X(resize_bilinear_ref) X(resize_bilinear_grad_ref) X(resize_nearest_neighbor_ref) \
    X(resize_nearest_neighbor_grad_ref) X(resize_bicubic_ref) X(resize_bicubic_grad_ref) \
    X(resize_area_ref) X(crop_and_resize_ref) X(crop_and_resize_grad_image_ref) \
    X(crop_and_resize_grad_boxes_ref) X(rgb_to_hsv_ref) X(hsv_to_rgb_ref) \
    X(adjust_hue_ref) X(adjust_saturation_ref) X(adjust_contrastv2_ref)

#define KERNELS_SPECIAL(X) \
    X(acos_ref) X(asin_ref) X(atan_ref) X(acosh_ref) X(asinh_ref) X(atanh_ref) X(cosh_ref) \
    X(sinh_ref) X(tan_ref) X(erfc_ref) X(lgamma_ref) X(digamma_ref) X(erfinv_ref) \
    X(ndtri_ref) X(inv_ref) X(inv_grad_ref) X(atan2_ref) X(xlogy_ref) X(xlog1py_ref) \
    X(next_after_ref) X(zeta_ref) X(polygamma_ref) X(mod_ref) X(approximate_equal_ref) X(bitwise_and_ref) \
    X(bitwise_or_ref) X(bitwise_xor_ref) X(left_shift_ref) X(right_shift_ref) X(invert_ref) \
    X(population_count_ref) X(real_ref) X(imag_ref) X(angle_ref) X(complex_abs_ref) \
    X(complex_ref)

#define KERNELS_BOXES(X) \
    X(sample_distorted_bounding_box_ref) X(sample_distorted_bounding_box_v2_ref) \
    X(non_max_suppression_ref) X(non_max_suppression_v2_ref) X(non_max_suppression_v3_ref) \
    X(non_max_suppression_v4_ref) X(non_max_suppression_v5_ref)

#define KERNELS_RNN(X) \
    X(lstm_block_cell_ref) X(lstm_block_cell_grad_ref) X(block_lstm_ref) \
    X(block_lstm_v2_ref) X(block_lstm_grad_ref) X(block_lstm_grad_v2_ref) \
    X(gru_block_cell_ref) X(gru_block_cell_grad_ref) \
    X(gru_sequence_ref) X(gru_sequence_grad_ref) X(rnn_sequence_ref) \
    X(rnn_sequence_grad_ref) \
    X(layer_norm_ref) X(layer_norm_grad_ref) X(gelu_ref) X(attention_ref) X(attention_grad_ref)

#define KERNELS_REF(X) \
    KERNELS_SPECIAL(X) KERNELS_BOXES(X) KERNELS_DIAGONAL(X) KERNELS_IMAGE(X) KERNELS_RNN(X) \
    KERNELS_ACTIVATION(X) KERNELS_ALONG(X) KERNELS_BATCH_NORM(X) KERNELS_BINARY(X) \
    KERNELS_COMPARE(X) KERNELS_CONV(X) KERNELS_FILES(X) KERNELS_FILL(X) \
    KERNELS_FRAMEWORK(X) KERNELS_GATHER(X) KERNELS_JOIN(X) KERNELS_LAYOUT(X) \
    KERNELS_MAT_MUL(X) KERNELS_NN(X) KERNELS_OPTIMIZER(X) KERNELS_PARTITION(X) \
    KERNELS_POOL(X) KERNELS_RANDOM(X) KERNELS_RANDOM_GAMMA(X) \
    KERNELS_RANDOM_POISSON(X) KERNELS_RANDOM_CATEGORICAL(X) KERNELS_RANDOM_TRUNCATED(X) \
    KERNELS_RANDOM_STATE(X) KERNELS_SAMPLER(X) KERNELS_SPARSE(X) \
    KERNELS_REDUCE(X) KERNELS_SCATTER(X) \
    KERNELS_SEGMENT(X) KERNELS_SELECT(X) KERNELS_SETS(X) KERNELS_SHAPES(X) KERNELS_SLICE(X) \
    KERNELS_STATE(X) KERNELS_UNARY(X) KERNELS_RARE(X)
