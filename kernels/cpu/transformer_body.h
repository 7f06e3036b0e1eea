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
        vec a = (vec)((ivec)v & 0x7fffffff);
        ivec far = a >= 14.0f;
        a = choose(far, splat(14.0f), a);
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

/* Softmax of scale * x in place; from `count` to `columns` zeros. */
static void attention_weights(int64_t count, int64_t columns, float scale, float *x)
{
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
