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

#define KERNELS_RARE(X) \
    KERNELS_COUNT(X) KERNELS_SEARCH(X) KERNELS_BESSEL(X) KERNELS_GAMMA(X) \
    KERNELS_FFT(X)
