/* dot_body.h - products with few columns: rows of both factors, multiplied element by element.
 */

/* Loaded once: the compiler would rather load it again for each multiplication. */
INLINE vec load_once(const float *p)
{
    vec v = load(p);
#ifdef __x86_64__
    __asm__("" : "+x"(v));
#endif
    return v;
}

/* `rows` times `width` dot products at once: 2x5 keeps the loads below the multiplications. */
INLINE void dot_block(const int rows, const int width, int64_t k, const float *x, int64_t x_row,
                      const float *w, int64_t w_row, float *c, int64_t c_row, const float *bias)
{
    vec acc[2][5];
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 5
        for (int j = 0; j < width; j++)
            acc[i][j] = (vec){0};
    for (int64_t p = 0; p < k; p += LANES) {
        vec a[2];
#pragma GCC unroll 2
        for (int i = 0; i < rows; i++)
            a[i] = load_once(x + i * x_row + p);
#pragma GCC unroll 5
        for (int j = 0; j < width; j++) {
            vec b = load_once(w + j * w_row + p);
#pragma GCC unroll 2
            for (int i = 0; i < rows; i++)
                acc[i][j] += a[i] * b;
        }
    }
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 5
        for (int j = 0; j < width; j++)
            c[i * c_row + j] = lanes_sum(acc[i][j]) + (bias ? bias[j] : 0);
}

/* All rows for `width` columns of W, which stay in L1 meanwhile. */
INLINE void dot_columns(const int width, int64_t m, int64_t k, const float *x, int64_t x_row,
                        const float *w, int64_t w_row, float *c, int64_t c_row,
                        const float *bias)
{
    int64_t i = 0;
    for (; i + 2 <= m; i += 2)
        dot_block(2, width, k, x + i * x_row, x_row, w, w_row, c + i * c_row, c_row, bias);
    if (i < m)
        dot_block(1, width, k, x + i * x_row, x_row, w, w_row, c + i * c_row, c_row, bias);
}

/* What is left of k after whole vectors. */
static void dot_rest(int64_t m, int n, int64_t from, int64_t k, const float *x, int64_t x_row,
                     const float *w, int64_t w_row, float *c, int64_t c_row)
{
    for (int64_t i = 0; i < m; i++)
        for (int j = 0; j < n; j++)
            for (int64_t p = from; p < k; p++)
                c[i * c_row + j] += x[i * x_row + p] * w[j * w_row + p];
}

static void dot(int64_t m, int n, int64_t k, const float *x, int64_t x_row, const float *w,
                int64_t w_row, float *c, int64_t c_row, const float *bias)
{
    int64_t whole = k / LANES * LANES;
    int j = 0;
    for (; j + 5 <= n; j += 5)
        dot_columns(5, m, whole, x, x_row, w + j * w_row, w_row, c + j, c_row,
                    bias ? bias + j : NULL);
    if (n - j >= 3) {
        dot_columns(3, m, whole, x, x_row, w + j * w_row, w_row, c + j, c_row,
                    bias ? bias + j : NULL);
        j += 3;
    }
    for (; j < n; j++)
        dot_columns(1, m, whole, x, x_row, w + j * w_row, w_row, c + j, c_row,
                    bias ? bias + j : NULL);
    if (whole < k)
        dot_rest(m, n, whole, k, x, x_row, w, w_row, c, c_row);
}
