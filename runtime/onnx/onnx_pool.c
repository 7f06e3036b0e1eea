/* onnx_pool.c - poolings, batch normalisation and other sizes of images. */

#include "runtime/onnx/window.h"

static void pool(struct onnx *o, const char *op, int dims)
{
    struct window window;
    struct onnx_attr attrs[WINDOW_ATTRS_MAX + 1];
    int count;
    const int64_t *size = node_attr_ints(o->node, "ksize", &count);
    if (!size || count != dims + 2 || size[0] != 1 || size[dims + 1] != 1) {
        onnx_refuse(o, "its window goes over examples or channels");
        return;
    }
    if (!window_read(o, 0, size + 1, dims, &window))
        return;
    count = window_attrs(&window, false, attrs, 0);
    if (!strcmp(op, "AveragePool"))
        attrs[count++] = ONNX_I("count_include_pad", 0);
    onnx_give_first(o, 0, onnx_add(o, op, ONNX_IN(onnx_in_first(o, 0)), attrs, count));
}

static void convert_pool2d(struct onnx *o)
{
    pool(o, onnx_row_of(o)->to, 2);
}

static void convert_pool3d(struct onnx *o)
{
    pool(o, onnx_row_of(o)->to, 3);
}

static void convert_batch_norm(struct onnx *o)
{
    const char *format = node_attr_string(o->node, "data_format", "NHWC");
    if (node_attr_bool(o->node, "is_training", true) || strcmp(format, "NHWC") != 0) {
        onnx_refuse(o, "it is for training, or has its channels elsewhere than last");
        return;
    }
    const char *x =
        onnx_add(o, "BatchNormalization",
                 ONNX_IN(onnx_in_first(o, 0), onnx_in(o, 1), onnx_in(o, 2), onnx_in(o, 3),
                         onnx_in(o, 4)),
                 ONNX_ATTRS(ONNX_F("epsilon", node_attr_float(o->node, "epsilon", 0.0001F))));
    onnx_give_first(o, 0, x);
}

/* --- sizes --- */

/* How often larger the image becomes, for (batch, channels, height, width). */
static const char *scales(struct onnx *o)
{
    int64_t size[2];
    int count;
    struct tensor values;
    const struct shape *shape = onnx_shape(o, 0);
    if (!onnx_constant_ints(o, 1, size, 2, &count))
        return "";
    if (count != 2 || shape->rank != 4 || shape->dims[1] < 1 || shape->dims[2] < 1) {
        onnx_refuse(o, "the size of its images is not known");
        return "";
    }
    o->failed = !tensor_init(&values, F32, &SHAPE(4), o->err);
    if (o->failed)
        return "";
    float *to = tensor_f32_mut(&values);
    to[0] = to[1] = 1;
    for (int d = 0; d < 2; d++)
        to[2 + d] = (float)size[d] / (float)shape->dims[1 + d];
    const char *name = onnx_tensor(o, &values);
    tensor_release(&values);
    return name;
}

static void convert_resize(struct onnx *o)
{
    const char *mode = onnx_row_of(o)->to;
    bool half = node_attr_bool(o->node, "half_pixel_centers", false);
    bool corners = node_attr_bool(o->node, "align_corners", false), nearest = *mode == 'n';
    struct onnx_attr attrs[6];
    int count = 0;
    attrs[count++] = ONNX_S("mode", mode);
    attrs[count++] = ONNX_S("coordinate_transformation_mode", corners ? "align_corners"
                                                              : half  ? "half_pixel"
                                                                      : "asymmetric");
    if (nearest)
        attrs[count++] =
            ONNX_S("nearest_mode", half || corners ? "round_prefer_ceil" : "floor");
    if (*mode == 'c') {
        attrs[count++] = ONNX_F("cubic_coeff_a", half ? -0.5F : -0.75F);
        attrs[count++] = ONNX_I("exclude_outside", half);
    }
    const char *x =
        onnx_add(o, "Resize", ONNX_IN(onnx_in_first(o, 0), "", scales(o)), attrs, count);
    /* TensorFlow gives floats, whatever the image is made of. */
    if (!nearest && onnx_dtype(o, 0) != F32)
        onnx_refuse(o, "its images are of type %s", dtype_name(onnx_dtype(o, 0)));
    onnx_give_first(o, 0, x);
}

const struct onnx_row onnx_pool_rows[] = {{"AvgPool", convert_pool2d, "AveragePool"},
                                          {"AvgPool3D", convert_pool3d, "AveragePool"},
                                          {"FusedBatchNorm", convert_batch_norm, NULL},
                                          {"FusedBatchNormV2", convert_batch_norm, NULL},
                                          {"FusedBatchNormV3", convert_batch_norm, NULL},
                                          {"MaxPool", convert_pool2d, "MaxPool"},
                                          {"MaxPool3D", convert_pool3d, "MaxPool"},
                                          {"ResizeBicubic", convert_resize, "cubic"},
                                          {"ResizeBilinear", convert_resize, "linear"},
                                          {"ResizeNearestNeighbor", convert_resize, "nearest"},
                                          {NULL, NULL, NULL}};
