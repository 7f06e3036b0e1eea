/*
 * winograd_product_body.h - Winograd's convolution: the products at each point, of floats or of
 * pairs in bfloat16 (isa_bf16.h); see winograd.h and isa.h.
 */

/* x * y + sum; of pairs, both products. */
INLINE vec winograd_multiply(const bool pairs, vec sum, const float *x, vec y)
{
    return pairs ? multiply_pairs(sum, splat_pair(x), y) : sum + splat(*x) * y;
}

/* TILE_ROWS patches by one or two vectors of outputs. */
INLINE void winograd_product_of(const int vecs, const bool pairs,
                                const struct isa_winograd_product *p, const float *x,
                                const float *filter, float *y)
{
    const int each = pairs ? LANES / 2 : LANES; /* of a patch: a vector of channels in x */
    vec sums[TILE_ROWS][2];
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; i++)
        sums[i][0] = sums[i][1] = (vec){0};
    for (int64_t c = 0; c < p->in; c += LANES, x += (p->room - 1) * each) {
        for (int l = 0; l < each; l++, x++, filter += p->out) {
            vec f0 = load(filter);
            vec f1 = vecs > 1 ? load(filter + LANES) : f0;
#pragma GCC unroll 16
            for (int i = 0; i < TILE_ROWS; i++) {
                sums[i][0] = winograd_multiply(pairs, sums[i][0], x + i * each, f0);
                if (vecs > 1)
                    sums[i][1] = winograd_multiply(pairs, sums[i][1], x + i * each, f1);
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; i++) {
        store(y + i * LANES, sums[i][0]);
        if (vecs > 1)
            store(y + p->room * LANES + i * LANES, sums[i][1]);
    }
}

INLINE void winograd_product_all(const bool pairs, const struct isa_winograd_product *p)
{
    const int each = pairs ? LANES / 2 : LANES;
    for (int64_t k = 0; k < p->out; k += 2 * LANES)
        for (int64_t t = 0; t < p->patches; t += TILE_ROWS) {
            float *y = p->y + k * p->room + t * LANES;
            if (k + LANES < p->out)
                winograd_product_of(2, pairs, p, p->x + t * each, p->filter + k, y);
            else
                winograd_product_of(1, pairs, p, p->x + t * each, p->filter + k, y);
        }
}

/* Some channels of x by one or two vectors of y, summed over the patches (or pairs of them). */
INLINE void winograd_sums_of(const int rows, const int vecs, const bool pairs,
                             const struct isa_winograd_product *p, const float *x,
                             const float *y, float *filter)
{
    vec sums[LANES][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        sums[i][0] = sums[i][1] = (vec){0};
    const int64_t room = p->room * LANES;
    for (int64_t t = 0; t < p->patches; t++, x += LANES, y += LANES) {
        vec y0 = load(y);
        vec y1 = vecs > 1 ? load(y + room) : y0;
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            sums[i][0] = winograd_multiply(pairs, sums[i][0], x + i, y0);
            if (vecs > 1)
                sums[i][1] = winograd_multiply(pairs, sums[i][1], x + i, y1);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++) {
            float *to = filter + i * p->out + v * LANES;
            store(to, p->add ? load(to) + sums[i][v] : sums[i][v]);
        }
}

INLINE void winograd_sums_all(const bool pairs, const struct isa_winograd_product *p)
{
    for (int64_t k = 0; k < p->out; k += 2 * LANES)
        for (int64_t c = 0; c < p->in; c += LANES) {
            const float *x = p->x + c * p->room, *y = p->y + k * p->room;
            float *filter = p->sums + c * p->out + k;
            if (k + LANES < p->out) {
                winograd_sums_of(LANES / 2, 2, pairs, p, x, y, filter);
                winograd_sums_of(LANES / 2, 2, pairs, p, x + LANES / 2, y,
                                 filter + LANES / 2 * p->out);
            } else {
                winograd_sums_of(LANES, 1, pairs, p, x, y, filter);
            }
        }
}

#define WINOGRAD_PRODUCTS(name, pairs)                                                         \
    static void name##_product(const struct isa_winograd_product *p)                           \
    {                                                                                          \
        winograd_product_all(pairs, p);                                                        \
    }                                                                                          \
    static void name##_sums(const struct isa_winograd_product *p)                              \
    {                                                                                          \
        winograd_sums_all(pairs, p);                                                           \
    }
