/* color.c - contrast, hue and saturation of images, and colours as hue, saturation, value. */

#include "kernels/ref/numbers.h"

#include <math.h>

struct rgb {
    double channel[3];
};
/* Each in [0, 1]. */
struct hsv {
    double hue, saturation, value;
};

static struct hsv to_hsv(const struct rgb *in)
{
    double r = in->channel[0], g = in->channel[1], b = in->channel[2];
    double high = fmax(r, fmax(g, b)), low = fmin(r, fmin(g, b)), range = high - low;
    double norm = range > 0 ? 1 / (6 * range) : 0, hue = 0;
    if (range > 0)
        hue = r == high   ? norm * (g - b)
              : g == high ? norm * (b - r) + 2.0 / 6
                          : norm * (r - g) + 4.0 / 6;
    return (struct hsv){hue < 0 ? hue + 1 : hue, high > 0 ? range / high : 0, high};
}

static double clamp(double x)
{
    return x < 0 ? 0 : (x > 1 ? 1 : x);
}

static struct rgb to_rgb(const struct hsv *in)
{
    double h = in->hue * 6;
    const double base[3] = {clamp(fabs(h - 3) - 1), clamp(2 - fabs(h - 2)),
                            clamp(2 - fabs(h - 4))};
    struct rgb out;
    for (int c = 0; c < 3; c++)
        out.channel[c] = (1 + in->saturation * (base[c] - 1)) * in->value;
    return out;
}

static struct rgb load_pixel(const struct tensor *in, int64_t pixel)
{
    struct rgb rgb;
    for (int c = 0; c < 3; c++)
        rgb.channel[c] = kernel_load_for(in->dtype)(in->data, pixel * 3 + c);
    return rgb;
}

static void store_pixel(struct tensor *out, int64_t pixel, const double *values)
{
    for (int c = 0; c < 3; c++)
        kernel_store_for(out->dtype)(out->data, pixel * 3 + c, values[c]);
}

/* Pixels of three channels in, the same shape out. */
static struct tensor *pixels_out(struct kernel_call *call, int rank_least, struct error *err)
{
    const struct shape *in = &kernel_in(call, 0)->shape;
    char text[SHAPE_TEXT_BYTES];
    if (in->rank < rank_least)
        return fail_null(err, INVALID, "input must be at least %d-D, got shape%s%s", rank_least,
                         rank_least == 1 ? " " : "", shape_text(in, text, sizeof(text)));
    if (in->dims[in->rank - 1] != 3)
        return fail_null(err, rank_least == 1 ? PRECONDITION : INVALID,
                         "input must have 3 channels but %s %lld channels.",
                         rank_least == 1 ? "input only has" : "instead has",
                         (long long)in->dims[in->rank - 1]);
    return kernel_output(call, 0, in, err);
}

static bool rgb_to_hsv_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = pixels_out(call, 1, err);
    for (int64_t i = 0; out && i < out->count / 3; i++) {
        struct rgb rgb = load_pixel(kernel_in(call, 0), i);
        struct hsv hsv = to_hsv(&rgb);
        store_pixel(out, i, (const double[]){hsv.hue, hsv.saturation, hsv.value});
    }
    return out != NULL;
}

static bool hsv_to_rgb_run(struct kernel_call *call, struct error *err)
{
    struct tensor *out = pixels_out(call, 1, err);
    for (int64_t i = 0; out && i < out->count / 3; i++) {
        struct rgb in = load_pixel(kernel_in(call, 0), i);
        struct rgb rgb = to_rgb(&(struct hsv){in.channel[0], in.channel[1], in.channel[2]});
        store_pixel(out, i, rgb.channel);
    }
    return out != NULL;
}

/* Input 1: how much. */
static bool read_amount(const struct kernel_call *call, const char *name, double *amount,
                        struct error *err)
{
    const struct tensor *in = kernel_in(call, 1);
    char text[SHAPE_TEXT_BYTES];
    if (in->shape.rank != 0)
        return fail(err, INVALID, "%s must be scalar: %s", name,
                    shape_text(&in->shape, text, sizeof(text)));
    *amount = tensor_number(in, 0);
    return true;
}

/* Hue goes round: 1 is 0 again.  The circle is turned where the greys stay what they are. */
static bool adjust_hue_run(struct kernel_call *call, struct error *err)
{
    double delta = 0;
    if (!read_amount(call, "delta", &delta, err))
        return false;
    struct tensor *out = pixels_out(call, 3, err);
    for (int64_t i = 0; out && i < out->count / 3; i++) {
        struct rgb rgb = load_pixel(kernel_in(call, 0), i);
        double high = fmax(rgb.channel[0], fmax(rgb.channel[1], rgb.channel[2]));
        double low = fmin(rgb.channel[0], fmin(rgb.channel[1], rgb.channel[2]));
        double hue = to_hsv(&rgb).hue + delta;
        struct rgb pure = to_rgb(&(struct hsv){hue - floor(hue), 1, 1});
        for (int c = 0; c < 3; c++)
            rgb.channel[c] = low + (high - low) * pure.channel[c];
        store_pixel(out, i, rgb.channel);
    }
    return out != NULL;
}

static bool adjust_saturation_run(struct kernel_call *call, struct error *err)
{
    double scale = 0;
    if (!read_amount(call, "scale", &scale, err))
        return false;
    struct tensor *out = pixels_out(call, 3, err);
    for (int64_t i = 0; out && i < out->count / 3; i++) {
        struct rgb rgb = load_pixel(kernel_in(call, 0), i);
        struct hsv hsv = to_hsv(&rgb);
        hsv.saturation = clamp(hsv.saturation * scale);
        rgb = to_rgb(&hsv);
        store_pixel(out, i, rgb.channel);
    }
    return out != NULL;
}

/* Away from the mean of each channel of each image. */
static bool adjust_contrast_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int rank = in->shape.rank;
    double factor = 0;
    char text[SHAPE_TEXT_BYTES];
    if (rank < 3)
        return fail(err, INVALID, "input must be at least 3-D, got shape%s",
                    shape_text(&in->shape, text, sizeof(text)));
    if (!read_amount(call, "contrast_factor", &factor, err))
        return false;
    struct tensor *out = kernel_output(call, 0, &in->shape, err);
    if (!out)
        return false;
    int64_t channels = in->shape.dims[rank - 1];
    int64_t pixels = in->shape.dims[rank - 3] * in->shape.dims[rank - 2];
    int64_t images = out->count ? kernel_span(&in->shape, 0, rank - 3) : 0;
    kernel_load *load = kernel_load_for(in->dtype);
    kernel_store *store = kernel_store_for(in->dtype);
    for (int64_t n = 0; n < images * channels; n++) {
        int64_t start = n / channels * pixels * channels + n % channels;
        double sum = 0;
        for (int64_t i = 0; i < pixels; i++)
            sum += load(in->data, start + i * channels);
        double mean = sum / (double)pixels;
        for (int64_t i = 0; i < pixels; i++) {
            double value = load(in->data, start + i * channels);
            store(out->data, start + i * channels, mean + (value - mean) * factor);
        }
    }
    return true;
}

#define COLOR(name_, dtypes_, run_)                                                            \
    {                                                                                          \
        .op = name_, .device = CPU, .dtypes = dtypes_, .run = run_                             \
    }

const struct kernel kernel_rgb_to_hsv_ref = COLOR("RGBToHSV", DTYPES_FLOAT, rgb_to_hsv_run);
const struct kernel kernel_hsv_to_rgb_ref = COLOR("HSVToRGB", DTYPES_FLOAT, hsv_to_rgb_run);
const struct kernel kernel_adjust_hue_ref =
    COLOR("AdjustHue", BIT(F32) | BIT(F16), adjust_hue_run);
const struct kernel kernel_adjust_saturation_ref =
    COLOR("AdjustSaturation", BIT(F32) | BIT(F16), adjust_saturation_run);
const struct kernel kernel_adjust_contrastv2_ref =
    COLOR("AdjustContrastv2", BIT(F32) | BIT(F16), adjust_contrast_run);
