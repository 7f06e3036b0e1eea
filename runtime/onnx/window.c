/* window.c - see window.h. */

#include "runtime/onnx/window.h"

/* The spatial part of a list along (batch, ..., channels); 1 when the node has none. */
static bool spatial(struct onnx *o, const char *name, int dims, int64_t *out)
{
    int count;
    const int64_t *values = node_attr_ints(o->node, name, &count);
    for (int d = 0; d < dims; d++)
        out[d] = 1;
    if (!values || !count)
        return true;
    if (count != dims + 2 || values[0] != 1 || values[dims + 1] != 1) {
        onnx_refuse(o, "its %s go along examples or channels", name);
        return false;
    }
    memcpy(out, values + 1, (size_t)dims * sizeof(*out));
    return true;
}

static void pad_same(struct onnx *o, int input, struct window *w)
{
    const struct shape *shape = onnx_shape(o, input);
    for (int d = 0; d < w->dims; d++) {
        int64_t length = shape->rank == w->dims + 2 ? shape->dims[d + 1] : -1;
        if (length < 0) {
            w->auto_pad = "SAME_UPPER";
            return;
        }
        int64_t steps = (length + w->strides[d] - 1) / w->strides[d];
        int64_t reach = (w->size[d] - 1) * w->rates[d] + 1;
        int64_t more = (steps - 1) * w->strides[d] + reach - length;
        more = more > 0 ? more : 0;
        w->pads[d] = more / 2;
        w->pads[w->dims + d] = more - more / 2;
    }
}

bool window_read(struct onnx *o, int input, const int64_t *size, int dims, struct window *out)
{
    const char *format = node_attr_string(o->node, "data_format", dims == 2 ? "NHWC" : "NDHWC");
    const char *padding = node_attr_string(o->node, "padding", "VALID");
    *out = (struct window){.dims = dims};
    if (strcmp(format, dims == 2 ? "NHWC" : "NDHWC") != 0) {
        onnx_refuse(o, "its data_format is %s", format);
        return false;
    }
    memcpy(out->size, size, (size_t)dims * sizeof(*size));
    if (!spatial(o, "strides", dims, out->strides) ||
        !spatial(o, "dilations", dims, out->rates))
        return false;
    if (!strcmp(padding, "SAME")) {
        pad_same(o, input, out);
    } else if (!strcmp(padding, "EXPLICIT")) {
        int count;
        const int64_t *sides = node_attr_ints(o->node, "explicit_paddings", &count);
        for (int d = 0; count == 2 * (dims + 2) && d < dims; d++) {
            out->pads[d] = sides[2 * (d + 1)];
            out->pads[dims + d] = sides[2 * (d + 1) + 1];
        }
    }
    return true;
}

int window_attrs(const struct window *window, bool rates, struct onnx_attr *attrs, int count)
{
    attrs[count++] = ONNX_L("kernel_shape", window->size, window->dims);
    attrs[count++] = ONNX_L("strides", window->strides, window->dims);
    if (rates)
        attrs[count++] = ONNX_L("dilations", window->rates, window->dims);
    attrs[count++] = window->auto_pad ? ONNX_S("auto_pad", window->auto_pad)
                                      : ONNX_L("pads", window->pads, 2 * window->dims);
    return count;
}
