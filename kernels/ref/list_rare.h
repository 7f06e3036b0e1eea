/* list_rare.h - rows of list.h: kernels of ops that few programs use, by file. */
#pragma once

/* clang-format off */

#define KERNELS_COUNT(X) \
    X(bincount_ref) X(dense_bincount_ref) X(sparse_bincount_ref) X(ragged_bincount_ref) \
    X(dense_count_sparse_output_ref) X(sparse_count_sparse_output_ref) \
    X(ragged_count_sparse_output_ref)

#define KERNELS_SEARCH(X) \
    X(bucketize_ref) X(lower_bound_ref) X(upper_bound_ref) X(histogram_fixed_width_ref) \
    X(nth_element_ref) X(unravel_index_ref) X(cross_ref)

#define KERNELS_BESSEL(X) \
    X(bessel_i0_ref) X(bessel_i1_ref) X(bessel_i0e_ref) X(bessel_i1e_ref) X(bessel_k0_ref) \
    X(bessel_k1_ref) X(bessel_k0e_ref) X(bessel_k1e_ref) X(bessel_j0_ref) X(bessel_j1_ref) \
    X(bessel_y0_ref) X(bessel_y1_ref) X(dawsn_ref) X(expint_ref) X(fresnel_cos_ref) \
    X(fresnel_sin_ref) X(spence_ref)

#define KERNELS_GAMMA(X) \
    X(igamma_ref) X(igammac_ref) X(igamma_grad_a_ref) X(betainc_ref)

#define KERNELS_FFT(X) \
    X(fft_ref) X(ifft_ref) X(fft2d_ref) X(ifft2d_ref) X(fft3d_ref) X(ifft3d_ref) X(rfft_ref) \
    X(irfft_ref) X(rfft2d_ref) X(irfft2d_ref) X(rfft3d_ref) X(irfft3d_ref)

#define KERNELS_DECOMPOSE(X) \
    X(qr_ref) X(lu_ref) X(svd_ref) X(batch_svd_ref) X(matrix_solve_ls_ref) \
    X(batch_matrix_solve_ls_ref)

#define KERNELS_SELF_ADJOINT(X) \
    X(self_adjoint_eig_ref) X(self_adjoint_eig_v2_ref) X(batch_self_adjoint_eig_ref) \
    X(batch_self_adjoint_eig_v2_ref)

#define KERNELS_EIGEN(X) \
    X(eig_ref)

#define KERNELS_MATRIX_FUNCTION(X) \
    X(matrix_exponential_ref) X(matrix_logarithm_ref) X(matrix_square_root_ref)

#define KERNELS_BAND(X) \
    X(banded_triangular_solve_ref) X(tridiagonal_solve_ref) X(tridiagonal_mat_mul_ref) \
    X(cholesky_grad_ref) X(batch_cholesky_grad_ref)

#define KERNELS_FAKE_QUANT(X) \
    X(fake_quant_with_min_max_args_ref) X(fake_quant_with_min_max_args_gradient_ref) \
    X(fake_quant_with_min_max_vars_ref) X(fake_quant_with_min_max_vars_gradient_ref) \
    X(fake_quant_with_min_max_vars_per_channel_ref) \
    X(fake_quant_with_min_max_vars_per_channel_gradient_ref) X(quantize_and_dequantize_ref) \
    X(quantize_and_dequantize_v2_ref) X(quantize_and_dequantize_v3_ref) \
    X(quantize_and_dequantize_v4_ref) X(quantize_and_dequantize_v4_grad_ref) \
    X(quantize_v2_ref) X(dequantize_ref) X(extract_glimpse_ref) X(extract_glimpse_v2_ref) \
    X(py_func_ref) X(py_func_stateless_ref) X(eager_py_func_ref)

#define KERNELS_RAGGED(X) \
    X(ragged_range_ref) X(ragged_gather_ref) X(ragged_tensor_to_sparse_ref) \
    X(ragged_tensor_to_tensor_ref)

#define KERNELS_ARRAY_MORE(X) \
    X(empty_ref) X(deep_copy_ref) X(inplace_update_ref) X(inplace_add_ref) \
    X(inplace_sub_ref) X(conjugate_transpose_ref) X(reverse_ref) X(data_format_dim_map_ref) \
    X(data_format_vec_permute_ref) X(euclidean_norm_ref) X(cumulative_logsumexp_ref) \
    X(bias_add_v1_ref) X(check_numerics_v2_ref)

#define KERNELS_SET(X) \
    X(dense_to_dense_set_operation_ref) X(dense_to_sparse_set_operation_ref) \
    X(sparse_to_sparse_set_operation_ref) X(set_size_ref)

#define KERNELS_DILATION(X) \
    X(dilation2d_ref) X(dilation2d_backprop_input_ref) X(dilation2d_backprop_filter_ref)

#define KERNELS_CTC(X) \
    X(ctc_loss_ref) X(ctc_greedy_decoder_ref) X(ctc_beam_search_decoder_ref)

#define KERNELS_RARE(X) \
    KERNELS_COUNT(X) KERNELS_SEARCH(X) KERNELS_BESSEL(X) KERNELS_GAMMA(X) \
    KERNELS_FFT(X) KERNELS_DECOMPOSE(X) KERNELS_SELF_ADJOINT(X) KERNELS_EIGEN(X) \
    KERNELS_MATRIX_FUNCTION(X) KERNELS_BAND(X) KERNELS_FAKE_QUANT(X) KERNELS_RAGGED(X) \
    KERNELS_ARRAY_MORE(X) KERNELS_SET(X) KERNELS_DILATION(X) KERNELS_CTC(X)
