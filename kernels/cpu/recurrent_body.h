/*
 * recurrent_body.h - what the cells of recurrent networks do beside their products, and back;
 * see isa.h.
 */

INLINE vec logistic(vec x)
{
    return 1.0f / (1.0f + exponential(-x));
}

static void lstm_gates(const struct isa_lstm *s)
{
    for (int64_t r = 0; r < s->rows; r++) {
        for (int64_t j = 0; j < s->columns; j += LANES) {
            int64_t at = r * s->row + j, left = s->columns - j;
            vec i = logistic(load_part(s->i + at, left, 0));
            vec f = logistic(load_part(s->f + at, left, 0) + s->forget_bias);
            vec o = logistic(load_part(s->o + at, left, 0));
            vec ci = hyperbolic_tangent(load_part(s->ci + at, left, 0));
            vec cs = ci * i + f * load_part(s->cs_prev + at, left, 0);
            if (s->clip > 0)
                cs = smaller(larger(cs, splat(-s->clip)), splat(s->clip));
            vec co = hyperbolic_tangent(cs);
            store_part(s->i + at, left, i);
            store_part(s->f + at, left, f);
            store_part(s->o + at, left, o);
            store_part(s->ci + at, left, ci);
            store_part(s->cs + at, left, cs);
            store_part(s->co + at, left, co);
            store_part(s->h + at, left, o * co);
        }
    }
}

static void lstm_gates_grad(const struct isa_lstm_grad *s)
{
    for (int64_t r = 0; r < s->rows; r++) {
        for (int64_t j = 0; j < s->columns; j += LANES) {
            int64_t at = r * s->row + j, left = s->columns - j;
            vec i = load_part(s->i + at, left, 0), f = load_part(s->f + at, left, 0);
            vec o = load_part(s->o + at, left, 0), ci = load_part(s->ci + at, left, 0);
            vec co = load_part(s->co + at, left, 0);
            vec cs_prev = load_part(s->cs_prev + at, left, 0);
            vec dh = load_part(s->h_grad + at, left, 0) + load_part(s->h_carried + at, left, 0);
            vec dcs = (1.0f - co * co) * dh * o + load_part(s->cs_grad + at, left, 0) +
                      load_part(s->cs_carried + at, left, 0);
            int64_t gate = r * s->gates_row + j;
            store_part(s->di + gate, left, i * (1.0f - i) * dcs * ci);
            store_part(s->df + gate, left, f * (1.0f - f) * dcs * cs_prev);
            store_part(s->dci + gate, left, (1.0f - ci * ci) * dcs * i);
            store_part(s->d_o + gate, left, o * (1.0f - o) * dh * co);
            store_part(s->cs_carried + at, left, dcs * f);
        }
    }
}

static void gru_gates(const struct isa_gru *s)
{
    for (int64_t i = 0; i < s->rows; i++) {
        for (int64_t j = 0; j < s->columns; j += LANES) {
            int64_t at = i * s->row + j, left = s->columns - j;
            vec z = logistic(load_part(s->z + at, left, 0));
            vec r = logistic(load_part(s->r + at, left, 0));
            vec inner =
                load_part(s->inner + at, left, 0) + load_part(s->inner_bias + j, left, 0);
            vec c = hyperbolic_tangent(load_part(s->candidate + at, left, 0) + r * inner);
            store_part(s->z + at, left, z);
            store_part(s->r + at, left, r);
            store_part(s->inner + at, left, inner);
            store_part(s->candidate + at, left, c);
            store_part(s->h + at, left,
                       z * load_part(s->h_prev + at, left, 0) + (1.0f - z) * c);
        }
    }
}

static void gru_gates_grad(const struct isa_gru_grad *s)
{
    for (int64_t i = 0; i < s->rows; i++) {
        for (int64_t j = 0; j < s->columns; j += LANES) {
            int64_t at = i * s->row + j, to = i * s->sums_row + j, left = s->columns - j;
            vec z = load_part(s->z + at, left, 0), r = load_part(s->r + at, left, 0);
            vec c = load_part(s->candidate + at, left, 0);
            vec dh = load_part(s->h_grad + at, left, 0) + load_part(s->h_carried + at, left, 0);
            vec dc = dh * (1.0f - z) * (1.0f - c * c);
            vec dz = dh * (load_part(s->h_prev + at, left, 0) - c) * z * (1.0f - z);
            vec dr = dc * load_part(s->inner + at, left, 0) * r * (1.0f - r);
            store_part(s->sums + to, left, dz);
            store_part(s->sums + to + s->gate, left, dr);
            store_part(s->sums + to + 2 * s->gate, left, dc);
            store_part(s->inner_sums + to, left, dz);
            store_part(s->inner_sums + to + s->gate, left, dr);
            store_part(s->inner_sums + to + 2 * s->gate, left, dc * r);
            store_part(s->h_carried + at, left, dh * z);
        }
    }
}

static void tanh_grad(int64_t count, const float *h, const float *grad, const float *carried,
                      float *sums)
{
    for (int64_t i = 0; i < count; i += LANES) {
        int64_t left = count - i;
        vec y = load_part(h + i, left, 0);
        vec g = load_part(grad + i, left, 0) + load_part(carried + i, left, 0);
        store_part(sums + i, left, g * (1.0f - y * y));
    }
}
