/*
 * pool_body.h - max pooling of one image (height,width,channels), vectors along the channels;
 * see isa.h.
 */

/* The taps of output (r,c) that lie in the image. */
INLINE void pool_taps(const struct isa_pool *p, int64_t r, int64_t c, int64_t *y0, int64_t *y1,
                      int64_t *x0, int64_t *x1)
{
    int64_t y = r * p->stride_height - p->pad_top;
    int64_t x = c * p->stride_width - p->pad_left;
    *y0 = y < 0 ? 0 : y;
    *x0 = x < 0 ? 0 : x;
    *y1 = y + p->window_height < p->height ? y + p->window_height : p->height;
    *x1 = x + p->window_width < p->width ? x + p->window_width : p->width;
}

static void max_pool(const struct isa_pool *p, int64_t from, int64_t to, const float *x,
                     float *out)
{
    for (int64_t r = from; r < to; r++) {
        for (int64_t c = 0; c < p->out_width; c++) {
            int64_t y0, y1, x0, x1;
            pool_taps(p, r, c, &y0, &y1, &x0, &x1);
            float *target = out + (r * p->out_width + c) * p->channels;
            for (int64_t k = 0; k < p->channels; k += LANES) {
                int64_t left = p->channels - k;
                vec best = splat(-INFINITY);
                for (int64_t i = y0; i < y1; i++)
                    for (int64_t j = x0; j < x1; j++) {
                        vec v = load_part(x + (i * p->width + j) * p->channels + k, left, 0);
                        best = choose(best < v, v, best);
                    }
                store_part(target + k, left, best);
            }
        }
    }
}

static void max_pool_grad(const struct isa_pool *p, int64_t from, int64_t to, const float *x,
                          const float *y, const float *grad, float *dx)
{
    bool apart = p->stride_height >= p->window_height && p->stride_width >= p->window_width;
    for (int64_t r = from; r < to; r++) {
        for (int64_t c = 0; c < p->out_width; c++) {
            int64_t y0, y1, x0, x1;
            pool_taps(p, r, c, &y0, &y1, &x0, &x1);
            int64_t source = (r * p->out_width + c) * p->channels;
            for (int64_t k = 0; k < p->channels; k += LANES) {
                int64_t left = p->channels - k;
                vec most = load_part(y + source + k, left, 0);
                vec g = load_part(grad + source + k, left, 0);
                for (int64_t i = y0; i < y1; i++)
                    for (int64_t j = x0; j < x1; j++) {
                        int64_t at = (i * p->width + j) * p->channels + k;
                        ivec here = load_part(x + at, left, 0) == most;
                        vec d = choose(here, g, (vec){0});
                        g = choose(here, (vec){0}, g); /* given away */
                        if (!apart)
                            d += load_part(dx + at, left, 0);
                        store_part(dx + at, left, d);
                    }
            }
        }
    }
}
