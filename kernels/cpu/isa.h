/*
 * isa.h - the inner loops of the CPU kernels, compiled once per instruction set.
 *
 * isa_base.c (any CPU), isa_avx2.c and isa_avx512.c each compile the *_body.h files with their
 * own compiler flags and fill one struct isa, isa_avx512_bf16.c a part of one; isa() picks the
 * best that this machine can run. All functions here run on the calling thread; kernels split
 * the work.
 */
#pragma once

#include "base/base.h"
#include "kernels/cpu/isa_bf16.h"
#include "kernels/cpu/isa_image.h"

/* Rows and columns of a register tile of the largest instruction set; see gemm.c. */
#define ISA_TILE_ROWS_MAX 12
#define ISA_TILE_COLUMNS_MAX 32

/* One tile of C (rows,columns) += A (rows,k) * packed B (k,tile_columns). */
struct isa_tile {
    int rows;    /* 1 .. tile_rows */
    int columns; /* 1 .. tile_columns */
    int64_t k;
    const float *a; /* element (i,k) at a[i * a_row + k * a_column] */
    int64_t a_row;
    int64_t a_column;
    const float *b; /* element (k,j) at b[k * b_row + j]; readable up to tile_columns */
    int64_t b_row;
    float *panel; /* where B is packed, (k,tile_columns), while it is read; NULL: it is not */
    float *c;
    int64_t c_row;
    float alpha; /* C = alpha * A B + beta * C; beta 0 does not read C */
    float beta;
    const float *bias; /* (columns), added at the end; NULL for none */
    bool relu;         /* max(C, 0), after the bias */
};

/* What happens to one element of a binary operation. */
enum isa_binary {
    ISA_ADD,
    ISA_SUB,
    ISA_MUL,
    ISA_DIV,
    ISA_MAXIMUM,
    ISA_MINIMUM,
    ISA_SQUARED_DIFFERENCE,
    ISA_RELU_GRAD, /* a where b > 0, else 0 */
    ISA_GREATER,   /* 1 where a > b, else 0; and so on */
    ISA_GREATER_EQUAL,
    ISA_LESS,
    ISA_LESS_EQUAL,
    ISA_BINARIES
};

enum isa_unary {
    ISA_NEG,
    ISA_ABS,
    ISA_SQUARE,
    ISA_SQRT,
    ISA_RSQRT,
    ISA_RECIPROCAL,
    ISA_RELU,
    ISA_EXP,
    ISA_LOG,
    ISA_TANH,
    ISA_SIGMOID,
    ISA_COPY,
    ISA_UNARIES
};

/*
 * One step of an elementwise program: a value that stays in registers is loaded, or changed by
 * an operation with the operand, and perhaps stored for later.
 */
struct isa_step {
    enum { ISA_STEP_LOAD, ISA_STEP_UNARY, ISA_STEP_BINARY, ISA_STEP_REVERSED } kind;
    int operation;        /* enum isa_unary or isa_binary; REVERSED: the operand comes first */
    const float *operand; /* NULL for UNARY */
    int64_t advance;      /* of the operand, in floats per block */
    bool scalar;          /* the operand is one number */
    float *save;          /* a block, written over by the next one; NULL: it is not stored */
};

struct isa_adam {
    float alpha; /* lr * sqrt(1 - beta2^t) / (1 - beta1^t) */
    float beta1;
    float beta2;
    float epsilon;
    bool nesterov;
};

/* One step of LSTM cells, for (rows,columns) of matrices whose rows are `row` apart. */
struct isa_lstm {
    int64_t rows, columns, row;
    float *i, *f, *ci, *o; /* in: sums of the products; out: the gates */
    const float *cs_prev;
    float forget_bias, clip; /* clip 0 or less: none */
    float *cs, *co, *h;
};

/* And back: from the gradients of cs and h to those of the sums and of cs_prev. */
struct isa_lstm_grad {
    int64_t rows, columns, row;
    const float *i, *f, *ci, *o, *co, *cs_prev;
    const float *h_grad, *cs_grad; /* from outside of the sequence */
    const float *h_carried;        /* from the step behind, */
    float *cs_carried;             /* and for the step before */
    float *di, *df, *dci, *d_o;    /* rows gates_row apart */
    int64_t gates_row;
};

/* (rows,columns), each row brought to mean 0 and deviation 1, times scale, plus offset. */
struct isa_layer_norm {
    int64_t rows, columns;
    const float *x, *scale, *offset;
    float epsilon;
    float *y, *mean, *inverse; /* inverse: 1 / deviation; of each row */
};

struct isa_layer_norm_grad {
    int64_t rows, columns;
    const float *dy, *x, *scale, *mean, *inverse;
    float *dx;
    float *scale_grad, *offset_grad; /* (columns), added to */
};

/* One step of GRU cells whose reset gate works on the product of the state. */
struct isa_gru {
    int64_t rows, columns, row;
    const float *h_prev;
    float *z, *r,
        *candidate; /* in: sums of the products, of the inputs alone; out: the gates */
    float *inner;   /* the state's product for the candidate; the bias is added */
    const float *inner_bias;
    float *h;
};

struct isa_gru_grad {
    int64_t rows, columns, row;
    const float *z, *r, *candidate, *inner, *h_prev;
    const float *h_grad; /* from outside of the sequence */
    float *h_carried;    /* in: from the step behind; out: what does not go through products */
    int64_t sums_row, gate; /* of the results; their three gates are `gate` apart */
    float *sums;            /* gradients of the inputs' part, */
    float *inner_sums;      /* and of the state's product */
};

struct isa {
    const char *name;
    int lanes;
    int tile_rows;
    int tile_columns;

    void (*tile)(const struct isa_tile *tile);

    struct isa_bf16 bf16;

    /*
     * Packs B (k,columns), element (p,j) at b[p * row + j * column], into panels of (k,
     * tile_columns) one behind the other; the columns that the last one lacks are zero.
     */
    void (*pack)(float *panels, int64_t k, int64_t columns, const float *b, int64_t row,
                 int64_t column);

    /*
     * Packs A (rows,k), whose columns are contiguous and `column` apart, into `tiles` tiles of
     * (k, rows of the tile) one behind the other; tile t begins with row rows * t / tiles.
     */
    void (*pack_tiles)(float *to, int64_t k, int64_t rows, int64_t tiles, const float *a,
                       int64_t column);

    /* to[j * to_row + i] = from[i * from_row + j], for (rows,columns) of `from`. */
    void (*transpose)(int64_t rows, int64_t columns, const float *from, int64_t from_row,
                      float *to, int64_t to_row);

    /* C (m,n) = X (m,k) W^T with W as (n,k), n <= 16, rows of both `k` apart; plus bias, relu.
     */
    void (*dot)(int64_t m, int n, int64_t k, const float *x, int64_t x_row, const float *w,
                int64_t w_row, float *c, int64_t c_row, const float *bias);

    /* Elementwise, over `count` elements; a scalar stands for all of an operand. */
    void (*binary)(enum isa_binary operation, int64_t count, const float *a, bool a_scalar,
                   const float *b, bool b_scalar, float *out);
    void (*unary)(enum isa_unary operation, int64_t count, const float *x, float *out);

    /* Runs the steps on `blocks` blocks of 8 * lanes elements; results go to `out`. */
    void (*chain)(const struct isa_step *steps, int steps_count, int64_t blocks, float *out);

    void (*scale_add)(int64_t count, float scale, const float *x,
                      float *y); /* y += scale * x */
    void (*momentum)(int64_t count, float lr, float momentum, bool nesterov, const float *grad,
                     float *accum, float *var);
    void (*keras_momentum)(int64_t count, float lr, float momentum, bool nesterov,
                           const float *grad, float *accum, float *var);
    void (*adam)(int64_t count, const struct isa_adam *adam, const float *grad, float *m,
                 float *v, float *var);

    /* Rows of (rows,columns): out = in + bias, max 0 if `relu`. */
    void (*bias)(int64_t rows, int64_t columns, const float *x, const float *bias, bool relu,
                 float *out);

    /* sums[j] = sum over rows of x (rows,columns), rows `row` apart, for columns [from,to). */
    void (*column_sums)(int64_t rows, int64_t row, int64_t from, int64_t to, const float *x,
                        float *sums);

    /* The same sums, where x is masked first: out = grad where features > 0, else 0. */
    void (*relu_grad_sums)(int64_t rows, int64_t row, int64_t from, int64_t to,
                           const float *grad, const float *features, float *out, float *sums);

    /* Of each column of x (rows,columns): its mean, and the sum of squared distances from it.
     */
    void (*moments)(int64_t rows, int64_t columns, const float *x, float *mean, float *squares);

    /* y = x * slope + shift, plus side unless that is NULL, and max 0 if `relu`. */
    void (*normalise)(int64_t rows, int64_t columns, const float *x, const float *slope,
                      const float *shift, const float *side, bool relu, float *y);

    /* Down each column: the sum of the gradients d that count, and that of d * (x - mean). */
    void (*norm_sums)(const struct isa_norm_grad *g, float *sum, float *weighted);

    /* dx = d * slope + x * of_x + constant.  BY_Y has been through norm_sums(): the gradient
     * is `masked`, and plain. */
    void (*norm_grad)(const struct isa_norm_grad *g, const float *of_x, const float *constant,
                      float *dx);

    float (*sum)(int64_t count, const float *x);
    float (*maximum)(int64_t count, const float *x); /* -inf of none */

    /*
     * Row by row of logits (rows,classes): the softmax or its log; or the loss of each row, and
     * its gradient, softmax - label distribution.  Labels are below `classes`.
     */
    void (*softmax)(int64_t rows, int64_t classes, const float *logits, bool log, float *out);
    void (*xent_sparse)(int64_t rows, int64_t classes, const float *logits,
                        const int32_t *labels, float *loss, float *backprop);
    void (*xent_dense)(int64_t rows, int64_t classes, const float *logits, const float *labels,
                       float *loss, float *backprop);

    /* Rows [from,to) of the output of one image. */
    void (*max_pool)(const struct isa_pool *pool, int64_t from, int64_t to, const float *x,
                     float *out);

    /*
     * The gradient of those rows: to the first element of x that is equal to the maximum y.
     * Where windows do not overlap, all their elements are written, else added to.
     */
    void (*max_pool_grad)(const struct isa_pool *pool, int64_t from, int64_t to, const float *x,
                          const float *y, const float *grad, float *dx);

    /*
     * (n,n) places to the points: n 6 of an image; 3, 5 of a filter; 2, 4 of a gradient.  And
     * from there: n 2, 4 of a result; 3, 5 of a filter's gradient.
     */
    void (*winograd_spread)(int n, const struct isa_winograd *w);
    void (*winograd_gather)(int n, const struct isa_winograd *w);

    /* y = x filter; sums = x' y. */
    void (*winograd_product)(const struct isa_winograd_product *p);
    void (*winograd_sums)(const struct isa_winograd_product *p);

    void (*lstm_gates)(const struct isa_lstm *step);
    void (*lstm_gates_grad)(const struct isa_lstm_grad *step);
    void (*gru_gates)(const struct isa_gru *step);
    void (*gru_gates_grad)(const struct isa_gru_grad *step);
    /* sums = (grad + carried) * (1 - h^2), element by element */
    void (*tanh_grad)(int64_t count, const float *h, const float *grad, const float *carried,
                      float *sums);

    void (*layer_norm)(const struct isa_layer_norm *norm);
    void (*layer_norm_grad)(const struct isa_layer_norm_grad *norm);

    /* y = x * the normal distribution's mass below x; slope = dy / dx. */
    void (*gelu)(int64_t count, const float *x, float *y, float *slope);

    /* x = softmax(scale * x) of the first `count` elements, 0 up to `columns`; and back. */
    void (*attention_weights)(int64_t count, int64_t columns, float scale, float *x);
    void (*attention_weights_grad)(int64_t count, int64_t columns, float scale,
                                   const float *weights, float *grad);

    /* Philox 4x32-10: `blocks` times four words, counters from `counter` on. */
    void (*philox)(uint64_t key, uint64_t counter_high, uint64_t counter_low, int64_t blocks,
                   uint32_t *out);
};

/* The best for this machine; TRAINYARD_ISA=base|avx2|avx512|avx512_bf16 asks for no more.
 * Any thread. */
const struct isa *isa(void);

extern const struct isa isa_base;
#ifdef __x86_64__
extern const struct isa isa_avx2;
extern const struct isa isa_avx512;
extern const struct isa_bf16 isa_avx512_bf16; /* in place of isa_avx512's */
#endif
