/*
 * making_resnet.c - ResNet-20 for CIFAR: three times three blocks of two convolutions, batch
 * normalisation, and shortcuts that leave out positions and add channels of zeros (option A).
 */
#include "tests/bench/making.h"

/* 3x3 without bias; a stride of two pads both sides, as other frameworks do. */
static struct edge convolution(struct making *m, struct edge x, int64_t in, int64_t out,
                               int64_t stride)
{
    const int64_t strides[] = {1, stride, stride, 1};
    static const int64_t pads[] = {0, 0, 1, 1, 1, 1, 0, 0};
    return builder_add(&m->b, "Conv2D", "conv",
                       INPUTS(x, making_weights(m, &SHAPE(3, 3, in, out))),
                       ATTRS(attr_int_list("strides", strides, 4),
                             attr_string("padding", stride > 1 ? "EXPLICIT" : "SAME"),
                             attr_int_list("explicit_paddings", pads, stride > 1 ? 8 : 0)));
}

/* A running moment moves a tenth of the way to that of the batch. */
static void follow(struct making *m, double start, int64_t channels, struct edge moment)
{
    char name[24];
    snprintf(name, sizeof(name), "running%d", m->updates_count);
    struct edge handle = making_filled(m, name, &SHAPE(channels), start);
    struct edge apart = making_add(m, "Sub", INPUTS(making_read_variable(m, handle), moment));
    struct edge step =
        making_add(m, "Mul", INPUTS(apart, builder_scalar(&m->b, "pace", F32, 0.1)));
    m->updates[m->updates_count++] =
        builder_add(&m->b, "AssignSubVariableOp", "follow", INPUTS(handle, step),
                    ATTRS(attr_type("dtype", F32)))
            .from;
}

static struct edge normalise(struct making *m, struct edge x, int64_t channels)
{
    struct edge scale = making_vector(m, channels, 1), offset = making_vector(m, channels, 0);
    static const int64_t none = 0;
    struct edge empty = builder_ints(&m->b, "none", F32, &none, 0);
    struct edge norm =
        builder_add(&m->b, "FusedBatchNormV3", "norm", INPUTS(x, scale, offset, empty, empty),
                    ATTRS(attr_type("U", F32), attr_float("epsilon", 1e-5f)));
    follow(m, 0, channels, builder_output(norm, 1));
    follow(m, 1, channels, builder_output(norm, 2));
    return norm;
}

/* Every second position, with `out` / 4 channels of zeros on both sides. */
static struct edge shortcut(struct making *m, struct edge x, int64_t out)
{
    static const int64_t zeros[4], twos[] = {1, 2, 2, 1};
    const int64_t pads[] = {0, 0, 0, 0, 0, 0, out / 4, out / 4};
    struct edge begin = builder_ints(&m->b, "begin", I32, zeros, 4);
    x = builder_add(&m->b, "StridedSlice", "shortcut",
                    INPUTS(x, begin, begin, builder_ints(&m->b, "strides", I32, twos, 4)),
                    ATTRS(attr_int("begin_mask", 15), attr_int("end_mask", 15)));
    struct tensor table;
    if (!tensor_init(&table, I32, &SHAPE(4, 2), m->b.err)) {
        m->b.failed = true;
        return x;
    }
    for (int i = 0; i < 8; i++)
        tensor_set_number(&table, i, (double)pads[i]);
    struct edge paddings = builder_const(&m->b, "paddings", &table);
    tensor_release(&table);
    return making_add(m, "Pad", INPUTS(x, paddings));
}

static struct edge block(struct making *m, struct edge x, int64_t in, int64_t out)
{
    struct edge y = convolution(m, x, in, out, in == out ? 1 : 2);
    y = making_add(m, "Relu", INPUTS(normalise(m, y, out)));
    y = normalise(m, convolution(m, y, out, out, 1), out);
    if (in != out)
        x = shortcut(m, x, out);
    return making_add(m, "Relu", INPUTS(making_add(m, "AddV2", INPUTS(y, x))));
}

struct edge making_resnet(struct making *m, const struct bench_case *c, struct edge x)
{
    (void)c;
    x = normalise(m, convolution(m, x, 3, 16, 1), 16);
    x = making_add(m, "Relu", INPUTS(x));
    int64_t in = 16;
    for (int i = 0; i < 9; i++) {
        int64_t out = 16 << i / 3;
        x = block(m, x, in, out);
        in = out;
    }
    static const int64_t axes[] = {1, 2};
    x = builder_add(&m->b, "Mean", "pool", INPUTS(x, builder_ints(&m->b, "axes", I32, axes, 2)),
                    NO_ATTRS);
    return making_dense(m, x, 64, 10);
}
