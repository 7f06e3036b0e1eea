/*
 * sequence.h - the large products that all recurrent sequences have: of all steps at once,
 * before and after the steps themselves.
 */
#pragma once

#include "kernels/cpu/gemm.h"
#include "runtime/shape.h"

struct error;
struct kernel_call;

/* The threads that share a batch, when a step is so many multiplications. */
int sequence_threads(const struct kernel_call *call, int64_t batch, int64_t work);

/* A product with all threads of the call and its scratch. */
bool sequence_product(struct kernel_call *call, const struct gemm *gemm,
                      struct error *err) CHECKED;

/*
 * What goes into the steps: rows of numbers, or rows of a table that ids name.  A table that is
 * small beside the sequence takes part in products itself, each of its rows once however often
 * it is looked up: (x w)[i] = (table w)[ids[i]], and in the gradients what flows back to a row
 * is summed before it is multiplied.
 */
struct sequence_in {
    int64_t rows, inputs;
    const float *x;     /* (rows,inputs); NULL where the table takes part itself */
    const float *table; /* (table_rows,inputs), NULL: there is none */
    struct shape table_shape;
    const int32_t *ids; /* of the rows */
};

/*
 * The shape of input `x`, with input `table` of what its indices stand for; -1: there is no
 * table.  Fails with INVALID where they do not name rows of a matrix.
 */
bool sequence_in_shape(const struct kernel_call *call, int x, int table, struct shape *shape,
                       struct error *err) CHECKED;

/*
 * Reads input `x` of the call, (steps,batch,inputs) numbers, or with input `table`
 * (table_rows,inputs), (steps,batch) ids; -1: there is no table.  Fails with INVALID where an
 * id is not in the table.
 */
bool sequence_in_read(struct kernel_call *call, int x, int table, struct sequence_in *in,
                      struct error *err) CHECKED;

/* out (rows,columns) = x w + bias; w's rows are w_row apart. */
bool sequence_project(struct kernel_call *call, const struct sequence_in *in, int64_t columns,
                      const float *w, int64_t w_row, const float *bias, float *out,
                      struct error *err) CHECKED;

/*
 * The gradients of what goes in, from those of the sums (rows,columns): output 0 of the call,
 * of shape `x`, or the table's if there is one and the node does not say `by_rows`; w_grad
 * (inputs,columns) and b_grad (columns).  w's rows are `columns` long.
 */
bool sequence_in_grads(struct kernel_call *call, const struct sequence_in *in,
                       const struct shape *x, int64_t columns, const float *sums,
                       const float *w, float *w_grad, float *b_grad, struct error *err) CHECKED;

/* grad (inputs,columns) = x^T sums, over `rows` rows; or is added. */
bool sequence_weights_grad(struct kernel_call *call, int64_t rows, int64_t inputs,
                           int64_t columns, const float *x, const float *sums, bool add,
                           float *grad, struct error *err) CHECKED;

/*
 * The same of the weights of the states, which each step finds as the step before left them:
 * `first` (batch,cells), then h (steps,batch,cells) but for its last.
 */
bool sequence_states_grad(struct kernel_call *call, int64_t steps, int64_t batch, int64_t cells,
                          int64_t columns, const float *first, const float *h,
                          const float *sums, float *grad, struct error *err) CHECKED;

/* --- the products of the steps: packed weights, in the precision of the call --- */

/* gemm_pack(), or gemm_pack_bf16(), by all threads of the call. */
void sequence_pack(const struct kernel_call *call, float *panels, int64_t k, int64_t n,
                   const float *b, int64_t b_row, int64_t b_column);

/* Room for sequence_factor() with so many rows; in float none is needed, and it is NULL. */
bool sequence_room(struct kernel_call *call, int64_t rows, int64_t k, float **room,
                   struct error *err) CHECKED;

/* What is behind the first `rows` of a room; NULL of none. */
float *sequence_room_at(float *room, int64_t rows, int64_t k);

/*
 * Gives `product` its A (m,k), rows a_row apart; in bfloat16 a copy in `room`, which no other
 * thread uses meanwhile.
 */
void sequence_factor(struct gemm_packed *product, const float *a, int64_t a_row, float *room);
