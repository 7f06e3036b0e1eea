/*
 * rows_body.h - matrices row by row or column by column: bias, sums, softmax, cross-entropy;
 * see isa.h.
 */

static void bias_rows(int64_t rows, int64_t columns, const float *x, const float *bias,
                      bool relu, float *out)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j += LANES) {
            vec y = load_part(x + j, columns - j, 0) + load_part(bias + j, columns - j, 0);
            if (relu)
                y = choose(y < 0, (vec){0}, y);
            store_part(out + j, columns - j, y);
        }
        x += columns;
        out += columns;
    }
}

/* Columns [j, j + vecs * LANES), down all rows; only the last vector may be partial. */
INLINE void sum_columns(const int vecs, const bool masked, int64_t rows, int64_t row, int64_t j,
                        int64_t to, const float *x, const float *features, float *out,
                        float *sums)
{
    vec total[4] = {{0}, {0}, {0}, {0}};
    for (int64_t i = 0; i < rows; i++) {
#pragma GCC unroll 4
        for (int k = 0; k < vecs; k++) {
            int64_t at = i * row + j + k * LANES;
            int64_t left = to - j - k * LANES;
            vec v = load_part(x + at, left, 0);
            if (masked) {
                v = relu_grad(v, load_part(features + at, left, 0));
                store_part(out + at, left, v);
            }
            total[k] += v;
        }
    }
    for (int k = 0; k < vecs; k++)
        store_part(sums + j + k * LANES, to - j - k * LANES, total[k]);
}

INLINE void all_columns(const bool masked, int64_t rows, int64_t row, int64_t from, int64_t to,
                        const float *x, const float *features, float *out, float *sums)
{
    int64_t j = from;
    for (; j + 4 * LANES <= to; j += 4 * LANES)
        sum_columns(4, masked, rows, row, j, to, x, features, out, sums);
    for (; j < to; j += LANES)
        sum_columns(1, masked, rows, row, j, to, x, features, out, sums);
}

static void column_sums(int64_t rows, int64_t row, int64_t from, int64_t to, const float *x,
                        float *sums)
{
    all_columns(false, rows, row, from, to, x, NULL, NULL, sums);
}

static void relu_grad_sums(int64_t rows, int64_t row, int64_t from, int64_t to,
                           const float *grad, const float *features, float *out, float *sums)
{
    all_columns(true, rows, row, from, to, grad, features, out, sums);
}

/* out = e^(x - max); the sum of those, and the maximum. */
INLINE float exponentials(int64_t classes, const float *x, float *out, float *most)
{
    vec best = splat(-INFINITY);
    for (int64_t j = 0; j < classes; j += LANES)
        best = larger(best, load_part(x + j, classes - j, -INFINITY));
    float m = *most = lanes_maximum(best);
    vec total = {0};
    for (int64_t j = 0; j < classes; j += LANES) {
        vec e = exponential(load_part(x + j, classes - j, -INFINITY) - m);
        total += e;
        store_part(out + j, classes - j, e);
    }
    return lanes_sum(total);
}

static void softmax(int64_t rows, int64_t classes, const float *logits, bool log, float *out)
{
    for (int64_t i = 0; i < rows; i++) {
        float most;
        float total = exponentials(classes, logits, out, &most);
        float shift = most + logf(total);
        float scale = 1 / total;
        for (int64_t j = 0; j < classes; j += LANES) {
            vec y = log ? load_part(logits + j, classes - j, 0) - shift
                        : load_part(out + j, classes - j, 0) * scale;
            store_part(out + j, classes - j, y);
        }
        logits += classes;
        out += classes;
    }
}

static void xent_sparse(int64_t rows, int64_t classes, const float *logits,
                        const int32_t *labels, float *loss, float *backprop)
{
    for (int64_t i = 0; i < rows; i++) {
        float at_label = logits[labels[i]]; /* backprop may be logits */
        float most;
        float total = exponentials(classes, logits, backprop, &most);
        float scale = 1 / total;
        for (int64_t j = 0; j < classes; j += LANES)
            store_part(backprop + j, classes - j,
                       load_part(backprop + j, classes - j, 0) * scale);
        loss[i] = logf(total) - (at_label - most);
        backprop[labels[i]] -= 1;
        logits += classes;
        backprop += classes;
    }
}

static void xent_dense(int64_t rows, int64_t classes, const float *logits, const float *labels,
                       float *loss, float *backprop)
{
    for (int64_t i = 0; i < rows; i++) {
        float most;
        float total = exponentials(classes, logits, backprop, &most);
        float shift = logf(total);
        float scale = 1 / total;
        vec sum_ = {0};
        for (int64_t j = 0; j < classes; j += LANES) {
            int64_t left = classes - j;
            vec label = load_part(labels + j, left, 0);
            vec x = load_part(logits + j, left, 0) - most;
            sum_ += choose(label == 0, (vec){0}, label * (shift - x));
            store_part(backprop + j, left, load_part(backprop + j, left, 0) * scale - label);
        }
        loss[i] = lanes_sum(sum_);
        logits += classes;
        labels += classes;
        backprop += classes;
    }
}
