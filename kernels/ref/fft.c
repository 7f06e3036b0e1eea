/*
 * fft.c - discrete Fourier transforms in double, whatever the type.
 *
 * A power of two is split in halves; any other length is a convolution of the next power of two
 * (Bluestein), so that all take n log n steps.
 */

#include "kernels/ref/numbers.h"

#include <math.h>

/* What transforming one length takes. */
struct transform {
    int64_t length;
    int64_t padded;         /* the power of two of the convolution; the length if it is one */
    double complex *roots;  /* exp(-2 pi i k / padded) */
    double complex *chirp;  /* exp(-pi i k^2 / length), for other lengths */
    double complex *kernel; /* its transform, padded */
    double complex *work;   /* padded */
};

static int64_t power_above(int64_t size)
{
    int64_t power = 1;
    while (power < size)
        power *= 2;
    return power;
}

static void halves(const double complex *roots, double complex *data, int64_t size)
{
    for (int64_t i = 1, mirror = 0; i < size; i++) {
        int64_t bit = size / 2;
        for (; mirror & bit; bit /= 2)
            mirror ^= bit;
        mirror |= bit;
        if (i < mirror) {
            double complex kept = data[i];
            data[i] = data[mirror];
            data[mirror] = kept;
        }
    }
    for (int64_t half = 1; half < size; half *= 2)
        for (int64_t start = 0; start < size; start += 2 * half)
            for (int64_t k = 0; k < half; k++) {
                double complex *a = data + start + k, *b = a + half;
                double complex root = roots[k * (size / (2 * half))];
                double re = creal(*b) * creal(root) - cimag(*b) * cimag(root);
                double im = creal(*b) * cimag(root) + cimag(*b) * creal(root);
                double complex turned = re + I * im;
                *b = *a - turned;
                *a += turned;
            }
}

static void conjugate(double complex *data, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        data[i] = conj(data[i]);
}

static bool transform_init(struct transform *t, struct kernel_call *call, int64_t length,
                           struct error *err)
{
    bool simple = power_above(length) == length;
    t->length = length;
    t->padded = simple ? length : power_above(2 * length - 1);
    t->roots = kernel_scratch(
        call, (size_t)(3 * t->padded + length + 1) * sizeof(double complex), err);
    if (!t->roots)
        return false;
    t->kernel = t->roots + t->padded;
    t->work = t->kernel + t->padded;
    t->chirp = t->work + t->padded;
    for (int64_t k = 0; k < t->padded; k++)
        t->roots[k] = cexp(-2 * M_PI * I * (double)k / (double)t->padded);
    if (simple)
        return true;
    memset(t->kernel, 0, (size_t)t->padded * sizeof(double complex));
    /* k^2 modulo 2 length, so that the angle stays small. */
    for (int64_t k = 0, square = 0; k < length; k++) {
        t->chirp[k] = cexp(-M_PI * I * (double)square / (double)length);
        t->kernel[k] = conj(t->chirp[k]);
        if (k > 0)
            t->kernel[t->padded - k] = conj(t->chirp[k]);
        square = (square + 2 * k + 1) % (2 * length);
    }
    halves(t->roots, t->kernel, t->padded);
    return true;
}

static void transform_run(const struct transform *t, double complex *data, bool inverse)
{
    if (inverse)
        conjugate(data, t->length);
    if (t->padded == t->length) {
        halves(t->roots, data, t->length);
    } else {
        memset(t->work, 0, (size_t)t->padded * sizeof(double complex));
        for (int64_t k = 0; k < t->length; k++)
            t->work[k] = data[k] * t->chirp[k];
        halves(t->roots, t->work, t->padded);
        for (int64_t k = 0; k < t->padded; k++)
            t->work[k] = conj(t->work[k] * t->kernel[k]);
        halves(t->roots, t->work, t->padded);
        for (int64_t k = 0; k < t->length; k++)
            data[k] = conj(t->work[k]) / (double)t->padded * t->chirp[k];
    }
    if (inverse) {
        conjugate(data, t->length);
        for (int64_t k = 0; k < t->length; k++)
            data[k] /= (double)t->length;
    }
}

/* One box of numbers transformed along every axis; `line` has room for the longest. */
static void transform_box(double complex *box, double complex *line, const int64_t *dims,
                          int rank, const struct transform *transforms, bool inverse)
{
    int64_t count = 1, inner = 1;
    for (int d = 0; d < rank; d++)
        count *= dims[d];
    for (int d = rank - 1; d >= 0; d--) {
        for (int64_t i = 0; i < count / dims[d]; i++) {
            double complex *at = box + i / inner * inner * dims[d] + i % inner;
            for (int64_t k = 0; k < dims[d]; k++)
                line[k] = at[k * inner];
            transform_run(&transforms[d], line, inverse);
            for (int64_t k = 0; k < dims[d]; k++)
                at[k * inner] = line[k];
        }
        inner *= dims[d];
    }
}

/* Which transform a node is. */
struct fourier {
    int rank;
    bool inverse;
    bool real;
    int64_t dims[3]; /* of the transform */
};

static bool fourier_lengths(const struct kernel_call *call, struct fourier *f,
                            struct error *err)
{
    const struct shape *in = &kernel_in(call, 0)->shape;
    char text[SHAPE_TEXT_BYTES];
    if (in->rank < f->rank)
        return fail(err, INVALID, "Input must have rank of at least %d but got: %s", f->rank,
                    shape_text(in, text, sizeof(text)));
    for (int d = 0; d < f->rank; d++)
        f->dims[d] = in->dims[in->rank - f->rank + d];
    if (!f->real)
        return true;
    const struct tensor *lengths = kernel_in(call, 1);
    if (lengths->shape.rank != 1 || lengths->count != f->rank)
        return fail(err, INVALID, "fft_length must have shape [%d]", f->rank);
    for (int d = 0; d < f->rank; d++) {
        int64_t have = f->dims[d], length = tensor_integer(lengths, d);
        if (length < 0)
            return fail(err, INVALID, "fft_length[%d] must >= 0, but got: %lld", d,
                        (long long)length);
        int64_t least = f->inverse && d == f->rank - 1 ? length / 2 + 1 : length;
        if (have != 0 && have < least)
            return fail(err, INVALID,
                        "Input dimension %d must have length of at least %lld but got: %lld",
                        in->rank - f->rank + d, (long long)least, (long long)have);
        f->dims[d] = length;
    }
    return true;
}

/* Where in the input the box's element is; -1 where a real signal's symmetry gives it. */
static int64_t place_in(const struct fourier *f, const int64_t *have, int64_t index,
                        bool *mirrored)
{
    int64_t at[3] = {0};
    for (int d = f->rank - 1; d >= 0; d--) {
        at[d] = index % f->dims[d];
        index /= f->dims[d];
    }
    int last = f->rank - 1;
    *mirrored = f->real && f->inverse && at[last] > f->dims[last] / 2;
    if (*mirrored)
        for (int d = 0; d < f->rank; d++)
            at[d] = (f->dims[d] - at[d]) % f->dims[d];
    int64_t place = 0;
    for (int d = 0; d < f->rank; d++)
        place = place * have[d] + at[d];
    return place;
}

static bool fourier_boxes(struct kernel_call *call, const struct fourier *f, struct tensor *out,
                          struct error *err)
{
    const struct tensor *in = kernel_in(call, 0);
    int64_t have[3] = {1, 1, 1}, in_size = 1, out_size = 1, size = 1;
    struct transform transforms[3];
    for (int d = 0; d < f->rank; d++) {
        have[d] = in->shape.dims[in->shape.rank - f->rank + d];
        in_size *= have[d];
        size *= f->dims[d];
        out_size *= out->shape.dims[out->shape.rank - f->rank + d];
        if (!transform_init(&transforms[d], call, f->dims[d], err))
            return false;
    }
    double complex *box = kernel_scratch(call, (size_t)size * 2 * sizeof(*box), err);
    if (!box)
        return false;
    int64_t out_last = out->shape.dims[out->shape.rank - 1], last = f->dims[f->rank - 1];
    for (int64_t b = 0; b < out->count / out_size; b++) {
        for (int64_t i = 0; i < size; i++) {
            bool mirrored;
            int64_t at = place_in(f, have, i, &mirrored);
            box[i] = kernel_complex_at(in, b * in_size + at);
            box[i] = mirrored ? conj(box[i]) : box[i];
        }
        transform_box(box, box + size, f->dims, f->rank, transforms, f->inverse);
        for (int64_t i = 0; i < out_size; i++)
            kernel_set_complex(out, b * out_size + i, box[i / out_last * last + i % out_last]);
    }
    return true;
}

static bool fourier_run(struct kernel_call *call, struct error *err)
{
    const char *name = call->node->op->name;
    const struct tensor *in = kernel_in(call, 0);
    const char *digit = strpbrk(name, "23");
    struct fourier f = {.rank = digit ? *digit - '0' : 1,
                        .inverse = strstr(name, "IFFT") || strstr(name, "IRFFT"),
                        .real = strstr(name, "RFFT") != NULL};
    if (!fourier_lengths(call, &f, err))
        return false;
    struct shape shape = in->shape;
    for (int d = 0; d < f.rank; d++)
        shape.dims[shape.rank - f.rank + d] = f.dims[d];
    if (f.real && !f.inverse && f.dims[f.rank - 1] > 0)
        shape.dims[shape.rank - 1] = f.dims[f.rank - 1] / 2 + 1;
    struct tensor *out = kernel_output(call, 0, &shape, err);
    if (!out)
        return false;
    kernel_zero(out, 0, out->count);
    return out->count == 0 || in->count == 0 || fourier_boxes(call, &f, out, err);
}

#define FOURIER(name_)                                                                         \
    {                                                                                          \
        .op = name_, .device = CPU, .run = fourier_run                                         \
    }

const struct kernel kernel_fft_ref = FOURIER("FFT");
const struct kernel kernel_ifft_ref = FOURIER("IFFT");
const struct kernel kernel_fft2d_ref = FOURIER("FFT2D");
const struct kernel kernel_ifft2d_ref = FOURIER("IFFT2D");
const struct kernel kernel_fft3d_ref = FOURIER("FFT3D");
const struct kernel kernel_ifft3d_ref = FOURIER("IFFT3D");
const struct kernel kernel_rfft_ref = FOURIER("RFFT");
const struct kernel kernel_irfft_ref = FOURIER("IRFFT");
const struct kernel kernel_rfft2d_ref = FOURIER("RFFT2D");
const struct kernel kernel_irfft2d_ref = FOURIER("IRFFT2D");
const struct kernel kernel_rfft3d_ref = FOURIER("RFFT3D");
const struct kernel kernel_irfft3d_ref = FOURIER("IRFFT3D");
