/* fft.c - discrete Fourier transforms of one, two and three dimensions. */

#include "runtime/ops/internal.h"

/* Dimensions that the op transforms: "RFFT2D" is 2. */
static int rank_of(const struct node *node)
{
    const char *digit = strpbrk(node->op->name, "23");
    return digit ? *digit - '0' : 1;
}

static bool infer_same(struct infer *infer, struct error *err)
{
    int rank = rank_of(infer->node);
    infer->outputs[0] = infer->inputs[0];
    return infer->inputs[0].rank < 0 || infer->inputs[0].rank >= rank ||
           fail(err, INVALID, "Shape must be at least rank %d but is rank %d", rank,
                infer->inputs[0].rank);
}

/* Of a real signal, or back to one: the last dimension has half of the frequencies. */
static bool infer_real(struct infer *infer, bool forward, struct error *err)
{
    int rank = rank_of(infer->node), count;
    int64_t lengths[LIMIT_TENSOR_RANK];
    if (!infer_same(infer, err) || infer->inputs[0].rank < 0)
        return infer->inputs[0].rank < 0;
    struct shape *out = &infer->outputs[0];
    bool known = op_infer_values(infer, 1, lengths, &count) && count == rank;
    for (int i = 0; i < rank; i++) {
        int64_t length = known ? lengths[i] : -1;
        if (forward && i == rank - 1 && length > 0)
            length = length / 2 + 1;
        out->dims[out->rank - rank + i] = length;
    }
    return true;
}

static bool infer_forward(struct infer *infer, struct error *err)
{
    return infer_real(infer, true, err);
}

static bool infer_back(struct infer *infer, struct error *err)
{
    return infer_real(infer, false, err);
}

/* --- gradients --- */

/* The last `rank` entries of a shape. */
static struct edge inner_shape(struct gradient *g, struct edge x, int rank)
{
    return op_call(g, "StridedSlice",
                   INPUTS(op_shape_of(g, x), op_ints(g, (const int64_t[]){-rank}, 1),
                          op_ints(g, (const int64_t[]){0}, 1),
                          op_ints(g, (const int64_t[]){1}, 1)),
                   ATTRS(attr_int("end_mask", 1)));
}

static struct edge as_type(struct gradient *g, struct edge x, enum dtype dtype)
{
    return op_call(g, "Cast", INPUTS(x), ATTRS(attr_type("DstT", dtype)));
}

/* The number of elements of such a shape, as a number of that type. */
static struct edge size_of(struct gradient *g, struct edge lengths, enum dtype dtype)
{
    return as_type(g, op_call2(g, "Prod", lengths, op_int(g, 0)), dtype);
}

/* The transforms are their inverses' adjoints, but for the size. */
static bool complex_gradient(struct gradient *g, const char *inverse, bool forward)
{
    struct edge dy = g->of_outputs[0];
    enum dtype dtype = op_edge_type(dy);
    struct edge size = size_of(g, inner_shape(g, dy, rank_of(g->node)), dtype);
    struct edge back = op_call1(g, inverse, dy);
    return op_gradient_single(g, op_call2(g, forward ? "Mul" : "RealDiv", back, size));
}

#define COMPLEX_GRADIENT(name, inverse, forward)                                               \
    static bool name##_gradient(struct gradient *g, struct error *err)                         \
    {                                                                                          \
        (void)err;                                                                             \
        return complex_gradient(g, inverse, forward);                                          \
    }
COMPLEX_GRADIENT(fft, "IFFT", true)
COMPLEX_GRADIENT(ifft, "FFT", false)
COMPLEX_GRADIENT(fft2d, "IFFT2D", true)
COMPLEX_GRADIENT(ifft2d, "FFT2D", false)
COMPLEX_GRADIENT(fft3d, "IFFT3D", true)
COMPLEX_GRADIENT(ifft3d, "FFT3D", false)

/* `x` with zeros behind it in its last dimensions until these are `lengths`. */
static struct edge pad_to(struct gradient *g, struct edge x, struct edge lengths, int rank)
{
    struct edge missing = op_call2(g, "Sub", lengths, inner_shape(g, x, rank));
    struct edge outer = op_call2(g, "Sub", op_call1(g, "Rank", x), op_int(g, rank));
    struct edge behind = op_call(
        g, "ConcatV2",
        INPUTS(op_call2(g, "Fill",
                        op_call2(g, "Reshape", outer, op_ints(g, (const int64_t[]){1}, 1)),
                        op_int(g, 0)),
               missing, op_int(g, 0)),
        ATTRS(attr_int("N", 2)));
    struct edge before = op_call1(g, "ZerosLike", behind);
    struct edge both = op_call(g, "Pack", INPUTS(before, behind),
                               ATTRS(attr_int("N", 2), attr_int("axis", 1)));
    return op_call2(g, "Pad", x, both);
}

/* The frequencies left out have no gradient: back with zeros there, the real part, as much as
 * went in. */
static bool rfft_gradients(struct gradient *g, const char *inverse)
{
    int rank = rank_of(g->node);
    struct edge dy = g->of_outputs[0], x = gradient_x(g, 0), lengths = gradient_x(g, 1);
    struct edge back = op_call1(g, inverse, pad_to(g, dy, lengths, rank));
    struct edge size = size_of(g, lengths, op_edge_type(dy));
    enum dtype real = op_edge_type(x);
    struct edge parts = op_call(g, "Real", INPUTS(op_call2(g, "Mul", back, size)),
                                ATTRS(attr_type("Tout", real)));
    return op_gradient_single(g, pad_to(g, parts, inner_shape(g, x, rank), rank));
}

static bool rfft_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return rfft_gradients(g, "IFFT");
}

static bool rfft2d_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return rfft_gradients(g, "IFFT2D");
}

/* Every frequency but the first, and the middle of an even length, stands for two. */
static bool irfft_gradients(struct gradient *g, const char *forward)
{
    struct edge dy = g->of_outputs[0], x = gradient_x(g, 0), lengths = gradient_x(g, 1);
    enum dtype real = op_edge_type(dy), type = op_edge_type(x);
    struct edge count = op_call2(g, "Reshape", inner_shape(g, x, 1), op_ints(g, NULL, 0));
    struct edge places = op_call3(g, "Range", op_int(g, 0), count, op_int(g, 1));
    struct edge last = op_call(g, "StridedSlice",
                               INPUTS(lengths, op_ints(g, (const int64_t[]){-1}, 1),
                                      op_ints(g, (const int64_t[]){0}, 1),
                                      op_ints(g, (const int64_t[]){1}, 1)),
                               ATTRS(attr_int("end_mask", 1)));
    struct edge twice = op_call2(g, "Mul", places, op_int(g, 2));
    struct edge single = op_call2(g, "LogicalOr", op_call2(g, "Equal", places, op_int(g, 0)),
                                  op_call2(g, "Equal", twice, last));
    struct edge one = op_number(g, dy, 1), two = op_number(g, dy, 2);
    struct edge mask = op_call3(g, "SelectV2", single, one, two);
    mask = op_call2(g, "RealDiv", mask, size_of(g, lengths, real));
    struct edge back = op_call(g, forward, INPUTS(dy, lengths),
                               ATTRS(attr_type("Treal", real), attr_type("Tcomplex", type)));
    return op_gradient_single(g, op_call2(g, "Mul", back, as_type(g, mask, type)));
}

static bool irfft_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return irfft_gradients(g, "RFFT");
}

static bool irfft2d_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return irfft_gradients(g, "RFFT2D");
}

const struct op op_fft = {
    .name = "FFT",
    .inputs = "input:Tcomplex",
    .outputs = "output:Tcomplex",
    .attrs = "Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_same,
    .gradient = fft_gradient,
};

const struct op op_ifft = {
    .name = "IFFT",
    .inputs = "input:Tcomplex",
    .outputs = "output:Tcomplex",
    .attrs = "Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_same,
    .gradient = ifft_gradient,
};

const struct op op_fft2d = {
    .name = "FFT2D",
    .inputs = "input:Tcomplex",
    .outputs = "output:Tcomplex",
    .attrs = "Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_same,
    .gradient = fft2d_gradient,
};

const struct op op_ifft2d = {
    .name = "IFFT2D",
    .inputs = "input:Tcomplex",
    .outputs = "output:Tcomplex",
    .attrs = "Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_same,
    .gradient = ifft2d_gradient,
};

const struct op op_fft3d = {
    .name = "FFT3D",
    .inputs = "input:Tcomplex",
    .outputs = "output:Tcomplex",
    .attrs = "Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_same,
    .gradient = fft3d_gradient,
};

const struct op op_ifft3d = {
    .name = "IFFT3D",
    .inputs = "input:Tcomplex",
    .outputs = "output:Tcomplex",
    .attrs = "Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_same,
    .gradient = ifft3d_gradient,
};

const struct op op_rfft = {
    .name = "RFFT",
    .inputs = "input:Treal fft_length:int32",
    .outputs = "output:Tcomplex",
    .attrs = "Treal:{float,double}=float Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_forward,
    .gradient = rfft_gradient,
};

const struct op op_irfft = {
    .name = "IRFFT",
    .inputs = "input:Tcomplex fft_length:int32",
    .outputs = "output:Treal",
    .attrs = "Treal:{float,double}=float Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_back,
    .gradient = irfft_gradient,
};

const struct op op_rfft2d = {
    .name = "RFFT2D",
    .inputs = "input:Treal fft_length:int32",
    .outputs = "output:Tcomplex",
    .attrs = "Treal:{float,double}=float Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_forward,
    .gradient = rfft2d_gradient,
};

const struct op op_irfft2d = {
    .name = "IRFFT2D",
    .inputs = "input:Tcomplex fft_length:int32",
    .outputs = "output:Treal",
    .attrs = "Treal:{float,double}=float Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_back,
    .gradient = irfft2d_gradient,
};

const struct op op_rfft3d = {
    .name = "RFFT3D",
    .inputs = "input:Treal fft_length:int32",
    .outputs = "output:Tcomplex",
    .attrs = "Treal:{float,double}=float Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_forward,
};

const struct op op_irfft3d = {
    .name = "IRFFT3D",
    .inputs = "input:Tcomplex fft_length:int32",
    .outputs = "output:Treal",
    .attrs = "Treal:{float,double}=float Tcomplex:{complex64,complex128}=complex64",
    .infer = infer_back,
};

const struct op op_batch_fft = {
    .name = "BatchFFT",
    .inputs = "input:complex64",
    .outputs = "output:complex64",
    .attrs = "",
    .infer = op_infer_unchanged,
};

const struct op op_batch_ifft = {
    .name = "BatchIFFT",
    .inputs = "input:complex64",
    .outputs = "output:complex64",
    .attrs = "",
    .infer = op_infer_unchanged,
};

const struct op op_batch_fft2d = {
    .name = "BatchFFT2D",
    .inputs = "input:complex64",
    .outputs = "output:complex64",
    .attrs = "",
    .infer = op_infer_unchanged,
};

const struct op op_batch_ifft2d = {
    .name = "BatchIFFT2D",
    .inputs = "input:complex64",
    .outputs = "output:complex64",
    .attrs = "",
    .infer = op_infer_unchanged,
};

const struct op op_batch_fft3d = {
    .name = "BatchFFT3D",
    .inputs = "input:complex64",
    .outputs = "output:complex64",
    .attrs = "",
    .infer = op_infer_unchanged,
};

const struct op op_batch_ifft3d = {
    .name = "BatchIFFT3D",
    .inputs = "input:complex64",
    .outputs = "output:complex64",
    .attrs = "",
    .infer = op_infer_unchanged,
};

const struct op op_fftnd = {
    .name = "FFTND",
    .inputs = "input:Tcomplex fft_length:int32 axes:int32",
    .outputs = "output:Tcomplex",
    .attrs = "Tcomplex:{complex64,complex128}=complex64",
    .infer = op_infer_unchanged,
};

const struct op op_ifftnd = {
    .name = "IFFTND",
    .inputs = "input:Tcomplex fft_length:int32 axes:int32",
    .outputs = "output:Tcomplex",
    .attrs = "Tcomplex:{complex64,complex128}=complex64",
    .infer = op_infer_unchanged,
};

const struct op op_rfftnd = {
    .name = "RFFTND",
    .inputs = "input:Treal fft_length:int32 axes:int32",
    .outputs = "output:Tcomplex",
    .attrs = "Treal:{float,double}=float Tcomplex:{complex64,complex128}=complex64",
};

const struct op op_irfftnd = {
    .name = "IRFFTND",
    .inputs = "input:Tcomplex fft_length:int32 axes:int32",
    .outputs = "output:Treal",
    .attrs = "Treal:{float,double}=float Tcomplex:{complex64,complex128}=complex64",
};
