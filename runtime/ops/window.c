/* window.c - windows that slide over images and volumes: shapes, and nodes with the same ones.
 */

#include "runtime/ops/internal.h"

int op_window_dims(const struct node *node)
{
    return strstr(node->op->name, "3D") ? 3 : 2;
}

bool op_window_channels_first(const struct node *node)
{
    return strncmp(node_attr_string(node, "data_format", ""), "NC", 2) == 0;
}

static bool is_size(int64_t value)
{
    return value >= 0 && value <= INT32_MAX;
}

/* Dimension `d` of the output; -1: not known, or an error that the kernel names. */
static int64_t window_dim(const struct infer *infer, int d, int64_t window, int64_t stride,
                          int64_t dilation)
{
    int64_t size = infer->inputs[0].dims[d];
    const char *padding = node_attr_string(infer->node, "padding", "VALID");
    int count;
    const int64_t *pads = node_attr_ints(infer->node, "explicit_paddings", &count);
    if (size < 0 || size > INT64_MAX / 4 || !is_size(window) || stride < 1 ||
        !is_size(stride) || !is_size(dilation))
        return -1;
    if (strcmp(padding, "SAME") == 0)
        return (size - 1 + stride) / stride;
    if (strcmp(padding, "EXPLICIT") == 0) {
        if (count <= 2 * d + 1 || !is_size(pads[2 * d]) || !is_size(pads[2 * d + 1]))
            return -1;
        size += pads[2 * d] + pads[2 * d + 1];
    }
    int64_t room = size - ((window - 1) * dilation + 1) + stride;
    return room < 0 ? 0 : room / stride;
}

void op_infer_windows(struct infer *infer, const int64_t *window, int channels_axis,
                      int64_t channels)
{
    int rank = op_window_dims(infer->node) + 2, strides_count, dilations_count;
    const int64_t *strides = node_attr_ints(infer->node, "strides", &strides_count);
    const char *name = node_attr(infer->node, "rates") ? "rates" : "dilations";
    const int64_t *dilations = node_attr_ints(infer->node, name, &dilations_count);
    if (infer->inputs[0].rank != rank || strides_count != rank)
        return;
    op_infer_rank(infer, 0, rank);
    for (int d = 0; d < rank; d++) {
        int64_t dilation = dilations_count == rank ? dilations[d] : 1;
        infer->outputs[0].dims[d] = d == channels_axis
                                        ? channels
                                        : window_dim(infer, d, window[d], strides[d], dilation);
    }
}

struct edge op_windowed(struct gradient *g, const char *op, const struct edge *inputs,
                        int inputs_count)
{
    static const char *const names[] = {
        "strides",   "ksize", "padding",           "data_format",
        "dilations", "rates", "explicit_paddings", "include_batch_in_index"};
    const struct op *target = op_find(op);
    struct attr attrs[ARRAY_LEN(names)];
    int count = 0;
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        const struct attr *attr = node_attr(g->node, names[i]);
        if (attr && op_signature_attr(op_signature(target), names[i]))
            attrs[count++] = *attr;
    }
    return op_call(g, op, inputs, inputs_count, attrs, count);
}
