/*
 * list.h - every kernel, one row each, by table.
 *
 * To add a kernel: a constant `const struct kernel kernel_NAME` in a file of its own (or of its
 * close family), and a row here or in its folder's list.  kernels_add() adds the tables: cpu
 * first, so that the plain C references are what is left when nothing faster takes a node.
 */
#pragma once

#include "runtime/kernel.h"

/* Fast ones: oneDNN, our own products, vector code (kernels/cpu). */
#define KERNELS_CPU(X)                                                                         \
    X(random_uniform_cpu)                                                                      \
    X(random_standard_normal_cpu)                                                              \
    X(truncated_normal_cpu)                                                                    \
    X(stateless_random_uniform_cpu)                                                            \
    X(stateless_random_uniform_v2_cpu)                                                         \
    X(stateless_random_normal_cpu)                                                             \
    X(stateless_random_normal_v2_cpu)                                                          \
    X(matmul_cpu)                                                                              \
    X(fused_matmul_cpu)                                                                        \
    X(matmul_descent_cpu)                                                                      \
    X(batch_mat_mul_cpu)                                                                       \
    X(batch_mat_mul_v2_cpu)                                                                    \
    X(mat_mul_bf16_cpu)                                                                        \
    X(batch_mat_mul_bf16_cpu)                                                                  \
    X(batch_mat_mul_v2_bf16_cpu)                                                               \
    X(attention_cpu)                                                                           \
    X(attention_grad_cpu)                                                                      \
    X(layer_norm_cpu)                                                                          \
    X(layer_norm_grad_cpu)                                                                     \
    X(gelu_cpu)                                                                                \
    X(unsorted_segment_sum_cpu)                                                                \
    X(transpose_cpu)                                                                           \
    X(cast_cpu)                                                                                \
    X(add_n_cpu)                                                                               \
    X(gru_sequence_cpu)                                                                        \
    X(gru_sequence_grad_cpu)                                                                   \
    X(rnn_sequence_cpu)                                                                        \
    X(rnn_sequence_grad_cpu)                                                                   \
    X(lookup_gru_sequence_cpu)                                                                 \
    X(lookup_gru_sequence_grad_cpu)                                                            \
    X(lookup_rnn_sequence_cpu)                                                                 \
    X(lookup_rnn_sequence_grad_cpu)                                                            \
    X(block_lstm_cpu)                                                                          \
    X(block_lstm_v2_cpu)                                                                       \
    X(block_lstm_grad_cpu)                                                                     \
    X(block_lstm_grad_v2_cpu)                                                                  \
    X(lookup_block_lstm_cpu)                                                                   \
    X(lookup_block_lstm_v2_cpu)                                                                \
    X(lookup_block_lstm_grad_cpu)                                                              \
    X(lookup_block_lstm_grad_v2_cpu)                                                           \
    X(conv2d_cpu)                                                                              \
    X(fused_conv2d_cpu)                                                                        \
    X(conv2d_input_grad_cpu)                                                                   \
    X(conv2d_filter_grad_cpu)                                                                  \
    X(bias_add_cpu)                                                                            \
    X(bias_add_grad_cpu)                                                                       \
    X(relu_bias_grad_cpu)                                                                      \
    X(max_pool_cpu)                                                                            \
    X(max_pool_grad_cpu)                                                                       \
    X(max_pool_relu_bias_grad_cpu)                                                             \
    X(softmax_cpu)                                                                             \
    X(log_softmax_cpu)                                                                         \
    X(sparse_xent_cpu)                                                                         \
    X(xent_cpu)                                                                                \
    X(softmax_grad_cpu)                                                                        \
    X(log_softmax_grad_cpu)                                                                    \
    X(cross_entropy_cpu)                                                                       \
    X(softmax_losses_cpu)                                                                      \
    X(add_cpu)                                                                                 \
    X(add_v2_cpu)                                                                              \
    X(sub_cpu)                                                                                 \
    X(mul_cpu)                                                                                 \
    X(div_cpu)                                                                                 \
    X(real_div_cpu)                                                                            \
    X(maximum_cpu)                                                                             \
    X(minimum_cpu)                                                                             \
    X(squared_difference_cpu)                                                                  \
    X(neg_cpu)                                                                                 \
    X(abs_cpu)                                                                                 \
    X(square_cpu)                                                                              \
    X(sqrt_cpu)                                                                                \
    X(rsqrt_cpu)                                                                               \
    X(reciprocal_cpu)                                                                          \
    X(relu_cpu)                                                                                \
    X(exp_cpu)                                                                                 \
    X(log_cpu)                                                                                 \
    X(tanh_cpu)                                                                                \
    X(sigmoid_cpu)                                                                             \
    X(relu_grad_cpu)                                                                           \
    X(sum_cpu)                                                                                 \
    X(mean_cpu)                                                                                \
    X(max_cpu)                                                                                 \
    X(apply_gradient_descent_cpu)                                                              \
    X(resource_apply_gradient_descent_cpu)                                                     \
    X(apply_momentum_cpu)                                                                      \
    X(resource_apply_momentum_cpu)                                                             \
    X(resource_apply_keras_momentum_cpu)                                                       \
    X(apply_adam_cpu)                                                                          \
    X(resource_apply_adam_cpu)                                                                 \
    X(elementwise_cpu)                                                                         \
    X(update_refs_cpu)                                                                         \
    X(update_resources_cpu)                                                                    \
    X(fused_batch_norm_cpu)                                                                    \
    X(fused_batch_norm_v2_cpu)                                                                 \
    X(fused_batch_norm_v3_cpu)                                                                 \
    X(fused_batch_norm_ex_cpu)                                                                 \
    X(fused_batch_norm_grad_cpu)                                                               \
    X(fused_batch_norm_grad_v2_cpu)                                                            \
    X(fused_batch_norm_grad_v3_cpu)                                                            \
    X(fused_batch_norm_grad_ex_cpu)

/* Plain C, obvious, one thread, complete: the oracle. */
#include "kernels/ref/list.h"

/* What does not compute numbers has one kernel each. */
#include "kernels/data/list.h"
#include "kernels/io/list.h"
#include "kernels/state/list.h"

#define KERNEL_EXTERN(name) extern const struct kernel kernel_##name;
KERNELS_CPU(KERNEL_EXTERN)
KERNELS_REF(KERNEL_EXTERN)
KERNELS_OF_STATE(KERNEL_EXTERN)
KERNELS_OF_IO(KERNEL_EXTERN)
KERNELS_OF_DATA(KERNEL_EXTERN)
#undef KERNEL_EXTERN

/* The fast ones, NULL-terminated. */
extern const struct kernel *const kernels_cpu[];

/* Adds all tables, once, at the start of a program; the references alone if so wished. */
void kernels_add(bool reference_only);
