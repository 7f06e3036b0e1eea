/*
 * transformer_body.h - layer normalisation, GELU, and the rows of an attention's weights; see
 * isa.h.
 */

/* --- layer normalisation --- */

static void layer_norm(const struct isa_layer_norm *n)
{
    const int64_t columns = n->columns;
    const float part = 1.0f / (float)columns;
    for (int64_t i = 0; i < n->rows; i++) {
        const float *x = n->x + i * columns;
        float *y = n->y + i * columns;
        vec total = {0}, squares = {0};
        for (int64_t j = 0; j < columns; j += LANES)
            total += load_part(x + j, columns - j, 0);
        const float mean = lanes_sum(total) * part;
        for (int64_t j = 0; j < columns; j += LANES) {
            vec d = load_part(x + j, columns - j, mean) - mean;
            squares += d * d;
        }
        const float inverse = 1.0f / sqrtf(lanes_sum(squares) * part + n->epsilon);
        for (int64_t j = 0; j < columns; j += LANES) {
            int64_t left = columns - j;
            vec d = (load_part(x + j, left, 0) - mean) * inverse;
            store_part(y + j, left,
                       d * load_part(n->scale + j, left, 0) +
                           load_part(n->offset + j, left, 0));
        }
        n->mean[i] = mean;
        n->inverse[i] = inverse;
    }
}

static void layer_norm_grad(const struct isa_layer_norm_grad *n)
{
    const int64_t columns = n->columns;
    const float part = 1.0f / (float)columns;
    for (int64_t i = 0; i < n->rows; i++) {
        const float *x = n->x + i * columns, *dy = n->dy + i * columns;
        float *dx = n->dx + i * columns;
        const float mean = n->mean[i], inverse = n->inverse[i];
        vec sum_ = {0}, product = {0};
        for (int64_t j = 0; j < columns; j += LANES) {
            int64_t left = columns - j;
            vec d = (load_part(x + j, left, mean) - mean) * inverse;
            vec g = load_part(dy + j, left, 0);
            store_part(n->scale_grad + j, left, load_part(n->scale_grad + j, left, 0) + g * d);
            store_part(n->offset_grad + j, left, load_part(n->offset_grad + j, left, 0) + g);
            g *= load_part(n->scale + j, left, 0);
            sum_ += g;
            product += g * d;
        }
        const float middle = lanes_sum(sum_) * part, slope = lanes_sum(product) * part;
        for (int64_t j = 0; j < columns; j += LANES) {
            int64_t left = columns - j;
            vec d = (load_part(x + j, left, 0) - mean) * inverse;
            vec g = load_part(dy + j, left, 0) * load_part(n->scale + j, left, 0);
            store_part(dx + j, left, (g - middle - d * slope) * inverse);
        }
    }
}

/* --- GELU --- */

/* x times the normal distribution's mass below x; `slope` is its derivative. */
static void gelu(int64_t count, const float *x, float *y, float *slope)
{
    for (int64_t i = 0; i < count; i += LANES) {
        int64_t left = count - i;
        vec v = load_part(x + i, left, 0);
        vec a = between(0, 14, (vec)((ivec)v & 0x7fffffff));
        ivec far = a >= 14.0f;
        vec e = choose(far, (vec){0}, exponential(a * a * -0.5f)); /* of a NaN a NaN */
        /* The mass above a, divided by e: a rational function, to 6e-9. */
        vec p = a * 4.077319521456957e-3f + 4.03706319630146e-2f;
        p = p * a + 1.8245618045330048e-1f;
        p = p * a + 4.3724337220191956e-1f;
        p = p * a + 0.5f;
        vec q = a * 1.0220195166766644e-2f + 1.0120098292827606e-1f;
        q = q * a + 4.6741417050361633e-1f;
        q = q * a + 1.1992673873901367f;
        q = q * a + 1.6723716259002686f;
        q = q * a + 1.0f;
        vec tail = e * p / q;
        vec below = choose(v < 0, tail, 1.0f - tail);
        store_part(y + i, left, v * below);
        store_part(slope + i, left, below + choose(far, (vec){0}, v) * e * 0.398942280f);
    }
}

/* --- attention --- */

/* Vectors of a row that are kept in registers: written and read again, what was stored in part
 * would have to reach the cache first. */
enum { SHORT_VECS = 4 };

/* The `vecs` vectors that begin below `count`, then zeros. */
INLINE void store_short(const int vecs, int64_t count, int64_t columns, const vec *v, float *x)
{
    for (int64_t j = (vecs - 1) * LANES; j < columns; j += LANES)
        store_part(x + j, columns - j, (vec){0});
#pragma GCC unroll 4
    for (int i = 0; i < vecs - 1; i++)
        store(x + i * LANES, v[i]);
    store_part(x + (vecs - 1) * LANES, count - (vecs - 1) * LANES, v[vecs - 1]);
}

INLINE void weights_short(const int vecs, int64_t count, int64_t columns, float scale, float *x)
{
    vec v[SHORT_VECS];
    vec best = splat(-INFINITY), total = {0};
#pragma GCC unroll 4
    for (int i = 0; i < vecs; i++) {
        v[i] = i < vecs - 1 ? load(x + i * LANES)
                            : load_part(x + i * LANES, count - i * LANES, -INFINITY);
        best = larger(best, v[i]);
    }
    const float most = lanes_maximum(best) * scale;
#pragma GCC unroll 4
    for (int i = 0; i < vecs; i++)
        total += v[i] = exponential(v[i] * scale - most);
    const float by = 1.0f / lanes_sum(total);
#pragma GCC unroll 4
    for (int i = 0; i < vecs; i++)
        v[i] *= by;
    store_short(vecs, count, columns, v, x);
}

INLINE void weights_grad_short(const int vecs, int64_t count, int64_t columns, float scale,
                               const float *w, float *g)
{
    vec a[SHORT_VECS], b[SHORT_VECS];
    vec total = {0};
#pragma GCC unroll 4
    for (int i = 0; i < vecs; i++) {
        int64_t left = i < vecs - 1 ? LANES : count - i * LANES;
        a[i] = load_part(w + i * LANES, left, 0);
        b[i] = load_part(g + i * LANES, left, 0);
        total += a[i] * b[i];
    }
    const float mean = lanes_sum(total);
#pragma GCC unroll 4
    for (int i = 0; i < vecs; i++)
        a[i] = (b[i] - mean) * a[i] * scale;
    store_short(vecs, count, columns, a, g);
}

#define SHORT(name, vecs, ...)                                                                 \
    switch (vecs) {                                                                            \
    case 1:                                                                                    \
        name(1, __VA_ARGS__);                                                                  \
        return;                                                                                \
    case 2:                                                                                    \
        name(2, __VA_ARGS__);                                                                  \
        return;                                                                                \
    case 3:                                                                                    \
        name(3, __VA_ARGS__);                                                                  \
        return;                                                                                \
    default:                                                                                   \
        name(4, __VA_ARGS__);                                                                  \
        return;                                                                                \
    }

/* Softmax of scale * x in place; from `count` to `columns` zeros. */
static void attention_weights(int64_t count, int64_t columns, float scale, float *x)
{
    if (columns <= SHORT_VECS * LANES)
        SHORT(weights_short, (count + LANES - 1) / LANES, count, columns, scale, x)
    vec best = splat(-INFINITY);
    for (int64_t j = 0; j < count; j += LANES)
        best = larger(best, load_part(x + j, count - j, -INFINITY));
    const float most = lanes_maximum(best) * scale;
    vec total = {0};
    for (int64_t j = 0; j < count; j += LANES) {
        vec e = exponential(load_part(x + j, count - j, -INFINITY) * scale - most);
        total += e;
        store_part(x + j, count - j, e);
    }
    const float by = 1.0f / lanes_sum(total);
    int64_t j = 0;
    for (; j < count; j += LANES)
        store_part(x + j, count - j, load_part(x + j, count - j, 0) * by);
    for (j = count; j < columns; j += LANES)
        store_part(x + j, columns - j, (vec){0});
}

/* From the gradient of the weights w to that of what they are a softmax of: in place in g. */
static void attention_weights_grad(int64_t count, int64_t columns, float scale, const float *w,
                                   float *g)
{
    if (columns <= SHORT_VECS * LANES)
        SHORT(weights_grad_short, (count + LANES - 1) / LANES, count, columns, scale, w, g)
    vec total = {0};
    for (int64_t j = 0; j < count; j += LANES)
        total += load_part(w + j, count - j, 0) * load_part(g + j, count - j, 0);
    const float mean = lanes_sum(total);
    for (int64_t j = 0; j < count; j += LANES)
        store_part(g + j, count - j,
                   (load_part(g + j, count - j, 0) - mean) * load_part(w + j, count - j, 0) *
                       scale);
    for (int64_t j = count; j < columns; j += LANES)
        store_part(g + j, columns - j, (vec){0});
}
