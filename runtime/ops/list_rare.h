/* list_rare.h - rows of list.h: ops that few programs use, by the file that defines them. */
#pragma once

/* clang-format off */

#define OPS_COUNT(X) \
    X(bincount) X(dense_bincount) X(sparse_bincount) X(ragged_bincount) \
    X(dense_count_sparse_output) X(sparse_count_sparse_output) X(ragged_count_sparse_output) \
    X(bucketize) X(histogram_fixed_width) X(lower_bound) X(upper_bound) X(nth_element) \
    X(unravel_index) X(unique_v2) X(unique_with_counts_v2) X(cross)

#define OPS_BESSEL(X) \
    X(bessel_i0) X(bessel_i1) X(bessel_i0e) X(bessel_i1e) X(bessel_j0) X(bessel_j1) \
    X(bessel_k0) X(bessel_k1) X(bessel_k0e) X(bessel_k1e) X(bessel_y0) X(bessel_y1) X(dawsn) \
    X(expint) X(fresnel_cos) X(fresnel_sin) X(spence) X(igamma) X(igammac) X(igamma_grad_a) \
    X(betainc)

#define OPS_FFT(X) \
    X(fft) X(ifft) X(fft2d) X(ifft2d) X(fft3d) X(ifft3d) X(rfft) X(irfft) X(rfft2d) \
    X(irfft2d) X(rfft3d) X(irfft3d) X(batch_fft) X(batch_ifft) X(batch_fft2d) \
    X(batch_ifft2d) X(batch_fft3d) X(batch_ifft3d) X(fftnd) X(ifftnd) X(rfftnd) X(irfftnd)

#define OPS_DECOMPOSE(X) \
    X(qr) X(svd) X(batch_svd) X(self_adjoint_eig) X(self_adjoint_eig_v2) \
    X(batch_self_adjoint_eig) X(batch_self_adjoint_eig_v2) X(eig) X(lu) \
    X(matrix_exponential) X(matrix_logarithm) X(matrix_square_root) X(matrix_solve_ls) \
    X(batch_matrix_solve_ls) X(cholesky_grad) X(batch_cholesky) X(batch_cholesky_grad) \
    X(batch_matrix_determinant) X(batch_matrix_inverse) X(batch_matrix_solve) \
    X(batch_matrix_triangular_solve)

#define OPS_BAND(X) \
    X(banded_triangular_solve) X(tridiagonal_solve) X(tridiagonal_mat_mul)

#define OPS_FAKE_QUANT(X) \
    X(fake_quant_with_min_max_args) X(fake_quant_with_min_max_args_gradient) \
    X(fake_quant_with_min_max_vars) X(fake_quant_with_min_max_vars_gradient) \
    X(fake_quant_with_min_max_vars_per_channel) \
    X(fake_quant_with_min_max_vars_per_channel_gradient) X(quantize_and_dequantize) \
    X(quantize_and_dequantize_v2) X(quantize_and_dequantize_v3) \
    X(quantize_and_dequantize_v4) X(quantize_and_dequantize_v4_grad) \
    X(quantize_v2) X(dequantize) X(extract_glimpse) X(extract_glimpse_v2) \
    X(py_func) X(py_func_stateless) X(eager_py_func)

#define OPS_RAGGED(X) \
    X(ragged_range) X(ragged_gather) X(ragged_tensor_to_tensor) X(ragged_tensor_to_sparse)

#define OPS_ARRAY_MORE(X) \
    X(empty) X(inplace_update) X(inplace_add) X(inplace_sub) X(deep_copy) \
    X(conjugate_transpose) X(reverse) X(data_format_dim_map) X(data_format_vec_permute) \
    X(euclidean_norm) X(cumulative_logsumexp) X(bias_add_v1) X(check_numerics_v2)

#define OPS_SET(X) \
    X(dense_to_dense_set_operation) X(dense_to_sparse_set_operation) \
    X(sparse_to_sparse_set_operation) X(set_size)

#define OPS_DILATION(X) \
    X(dilation2d) X(dilation2d_backprop_input) X(dilation2d_backprop_filter)

#define OPS_CTC(X) \
    X(ctc_loss) X(ctc_greedy_decoder) X(ctc_beam_search_decoder)

#define OPS_NO_KERNEL(X) \
    X(cudnn_rnn_params_size) X(cudnn_rnn) X(cudnn_rnnv2) X(cudnn_rnnv3) \
    X(cudnn_rnn_backprop) X(cudnn_rnn_backprop_v2) X(cudnn_rnn_backprop_v3) \
    X(cudnn_rnn_params_to_canonical) X(cudnn_rnn_params_to_canonical_v2) \
    X(cudnn_rnn_canonical_to_params) X(cudnn_rnn_canonical_to_params_v2) X(ctc_loss_v2) \
    X(nccl_all_reduce) X(nccl_reduce) X(nccl_broadcast) X(max_pool_grad_grad_with_argmax) \
    X(cross_replica_sum) X(all_to_all) X(collective_permute) X(xla_host_compute)

#define OPS_COLLECTIVE(X) \
    X(collective_reduce) X(collective_reduce_v2) X(collective_gather) X(collective_gather_v2) \
    X(collective_bcast_send) X(collective_bcast_send_v2) X(collective_bcast_recv) \
    X(collective_bcast_recv_v2) X(collective_assign_group_v2)

#define OPS_RARE(X) \
    OPS_COUNT(X) OPS_BESSEL(X) OPS_FFT(X) OPS_DECOMPOSE(X) \
    OPS_BAND(X) OPS_FAKE_QUANT(X) OPS_RAGGED(X) OPS_ARRAY_MORE(X) \
    OPS_SET(X) OPS_DILATION(X) OPS_CTC(X) OPS_NO_KERNEL(X) \
    OPS_COLLECTIVE(X)
