/*
 * norm_body.h - batch normalisation of a block that fits the first cache, column by column; see
 * isa.h.
 */

/* Columns [j, j + vecs * LANES); all are whole vectors unless the last one is `partial`. */
#define NORM_LOAD(p, k) (partial ? load_part(p, columns - j - (k)*LANES, 0) : load(p))
#define NORM_STORE(p, k, v)                                                                    \
    do {                                                                                       \
        if (partial)                                                                           \
            store_part(p, columns - j - (k)*LANES, v);                                         \
        else                                                                                   \
            store(p, v);                                                                       \
    } while (0)
#define NORM_EACH_VECTOR _Pragma("GCC unroll 4") for (int k = 0; k < vecs; k++)

/* Calls it for all columns: `most` vectors at a time, then one by one. */
#define NORM_COLUMNS(most, function, ...)                                                      \
    int64_t j = 0;                                                                             \
    for (; j + most * LANES <= columns; j += most * LANES)                                     \
        function(most, false, __VA_ARGS__);                                                    \
    for (; j + LANES <= columns; j += LANES)                                                   \
        function(1, false, __VA_ARGS__);                                                       \
    if (j < columns)                                                                           \
        function(1, true, __VA_ARGS__);

INLINE void moments_of(const int vecs, const bool partial, int64_t j, int64_t rows,
                       int64_t columns, const float *x, float *mean, float *squares)
{
    vec middle[4] = {{0}}, apart[4] = {{0}};
    for (int64_t i = 0; i < rows; i++)
        NORM_EACH_VECTOR middle[k] += NORM_LOAD(x + i * columns + j + k * LANES, k);
    NORM_EACH_VECTOR middle[k] *= 1 / (float)rows;
    for (int64_t i = 0; i < rows; i++)
        NORM_EACH_VECTOR
        {
            vec d = NORM_LOAD(x + i * columns + j + k * LANES, k) - middle[k];
            apart[k] += d * d;
        }
    NORM_EACH_VECTOR
    {
        NORM_STORE(mean + j + k * LANES, k, middle[k]);
        NORM_STORE(squares + j + k * LANES, k, apart[k]);
    }
}

static void moments(int64_t rows, int64_t columns, const float *x, float *mean, float *squares){
    NORM_COLUMNS(4, moments_of, j, rows, columns, x, mean, squares)}

INLINE void normalise_some(const int vecs, const bool partial, int64_t j, int64_t rows,
                           int64_t columns, const float *x, const float *slope,
                           const float *shift, const float *side, bool relu, float *y)
{
    vec slopes[4], shifts[4];
    NORM_EACH_VECTOR
    {
        slopes[k] = NORM_LOAD(slope + j + k * LANES, k);
        shifts[k] = NORM_LOAD(shift + j + k * LANES, k);
    }
    for (int64_t i = 0; i < rows; i++)
        NORM_EACH_VECTOR
        {
            int64_t at = i * columns + j + k * LANES;
            vec v = NORM_LOAD(x + at, k) * slopes[k] + shifts[k];
            if (side)
                v += NORM_LOAD(side + at, k);
            if (relu)
                v = choose(v < 0, (vec){0}, v); /* a NaN stays */
            NORM_STORE(y + at, k, v);
        }
}

static void normalise(int64_t rows, int64_t columns, const float *x, const float *slope,
                      const float *shift, const float *side, bool relu, float *y){
    NORM_COLUMNS(2, normalise_some, j, rows, columns, x, slope, shift, side, relu, y)}

/* The gradient of what came before Relu, if there was one. */
INLINE vec unmasked(vec grad, vec x, vec y, const int mask, vec slope, vec shift)
{
    if (mask == ISA_NORM_BY_X)
        y = x * slope + shift; /* to the bit what normalise() had */
    return mask == ISA_NORM_PLAIN ? grad : relu_grad(grad, y);
}

INLINE void norm_sums_of(const int vecs, const bool partial, int64_t j, int64_t columns,
                         const struct isa_norm_grad *g, const int mask, float *sum,
                         float *weighted)
{
    vec total[2] = {{0}}, products[2] = {{0}}, mean[2], slope[2], shift[2];
    NORM_EACH_VECTOR
    {
        mean[k] = NORM_LOAD(g->mean + j + k * LANES, k);
        slope[k] = NORM_LOAD(g->slope + j + k * LANES, k);
        shift[k] = NORM_LOAD(g->shift + j + k * LANES, k);
    }
    for (int64_t i = 0; i < g->rows; i++)
        NORM_EACH_VECTOR
        {
            int64_t at = i * columns + j + k * LANES;
            vec x = NORM_LOAD(g->x + at, k);
            vec y = mask == ISA_NORM_BY_Y ? NORM_LOAD(g->y + at, k) : x;
            vec d = unmasked(NORM_LOAD(g->grad + at, k), x, y, mask, slope[k], shift[k]);
            if (mask == ISA_NORM_BY_Y)
                NORM_STORE(g->masked + at, k, d);
            total[k] += d;
            products[k] += d * (x - mean[k]);
        }
    NORM_EACH_VECTOR
    {
        NORM_STORE(sum + j + k * LANES, k, total[k]);
        NORM_STORE(weighted + j + k * LANES, k, products[k]);
    }
}

INLINE void norm_sums_by(const int mask, const struct isa_norm_grad *g, float *sum,
                         float *weighted)
{
    int64_t columns = g->columns;
    NORM_COLUMNS(2, norm_sums_of, j, columns, g, mask, sum, weighted)
}

static void norm_sums(const struct isa_norm_grad *g, float *sum, float *weighted)
{
    if (g->mask == ISA_NORM_BY_X)
        norm_sums_by(ISA_NORM_BY_X, g, sum, weighted);
    else if (g->mask == ISA_NORM_BY_Y)
        norm_sums_by(ISA_NORM_BY_Y, g, sum, weighted);
    else
        norm_sums_by(ISA_NORM_PLAIN, g, sum, weighted);
}

INLINE void norm_grad_of(const int vecs, const bool partial, int64_t j, int64_t columns,
                         const struct isa_norm_grad *g, const int mask, const float *of_x,
                         const float *constant, float *dx)
{
    vec slope[2], shift[2], factor[2], rest[2];
    NORM_EACH_VECTOR
    {
        slope[k] = NORM_LOAD(g->slope + j + k * LANES, k);
        shift[k] = NORM_LOAD(g->shift + j + k * LANES, k);
        factor[k] = NORM_LOAD(of_x + j + k * LANES, k);
        rest[k] = NORM_LOAD(constant + j + k * LANES, k);
    }
    for (int64_t i = 0; i < g->rows; i++)
        NORM_EACH_VECTOR
        {
            int64_t at = i * columns + j + k * LANES;
            vec x = NORM_LOAD(g->x + at, k);
            vec d = unmasked(NORM_LOAD(g->grad + at, k), x, x, mask, slope[k], shift[k]);
            NORM_STORE(dx + at, k, d * slope[k] + (x * factor[k] + rest[k]));
        }
}

INLINE void norm_grad_by(const int mask, const struct isa_norm_grad *g, const float *of_x,
                         const float *constant, float *dx)
{
    int64_t columns = g->columns;
    NORM_COLUMNS(2, norm_grad_of, j, columns, g, mask, of_x, constant, dx)
}

static void norm_grad(const struct isa_norm_grad *g, const float *of_x, const float *constant,
                      float *dx)
{
    if (g->mask == ISA_NORM_BY_X)
        norm_grad_by(ISA_NORM_BY_X, g, of_x, constant, dx);
    else
        norm_grad_by(ISA_NORM_PLAIN, g, of_x, constant, dx);
}

#undef NORM_LOAD
#undef NORM_STORE
#undef NORM_EACH_VECTOR
#undef NORM_COLUMNS
