/* onnx_layout.c - the same elements under other dimensions; dimensions as numbers. */

#include "base/alloc.h"
#include "runtime/onnx/internal.h"

static const char *unsqueeze(struct onnx *o, const char *x, int64_t axis)
{
    return ONNX_ADD(o, "Unsqueeze", x, onnx_ints(o, &axis, 1));
}

static void convert_reshape(struct onnx *o)
{
    int64_t dims[LIMIT_TENSOR_RANK];
    int rank;
    if (onnx_find_constant(o, 1)) {
        if (onnx_constant_ints(o, 1, dims, LIMIT_TENSOR_RANK, &rank))
            onnx_give(o, 0, onnx_reshape(o, onnx_in(o, 0), dims, rank));
        return;
    }
    const char *shape = onnx_cast(o, onnx_in(o, 1), I64);
    onnx_give(o, 0,
              onnx_add(o, "Reshape", ONNX_IN(onnx_in(o, 0), shape),
                       ONNX_ATTRS(ONNX_I("allowzero", 1))));
}

static void convert_expand_dims(struct onnx *o)
{
    int64_t axis;
    int count;
    if (onnx_constant_ints(o, 1, &axis, 1, &count) && count == 1)
        onnx_give(o, 0, unsqueeze(o, onnx_in(o, 0), axis));
}

static void convert_squeeze(struct onnx *o)
{
    int count;
    const int64_t *axes = node_attr_ints(o->node, "squeeze_dims", &count);
    const char *x = onnx_in(o, 0);
    onnx_give(o, 0,
              count ? ONNX_ADD(o, "Squeeze", x, onnx_ints(o, axes, count))
                    : ONNX_ADD(o, "Squeeze", x));
}

static void convert_transpose(struct onnx *o)
{
    int64_t order[LIMIT_TENSOR_RANK];
    int rank;
    if (onnx_constant_ints(o, 1, order, LIMIT_TENSOR_RANK, &rank))
        onnx_give(o, 0, onnx_transpose(o, onnx_in(o, 0), order, rank));
}

static void convert_concat(struct onnx *o)
{
    int count = o->node->inputs_count - 1, rank = onnx_output_shape(o, 0)->rank, one;
    int64_t axis;
    bool first = false;
    if (!onnx_constant_ints(o, count, &axis, 1, &one) || one != 1)
        return;
    for (int i = 0; i < count; i++)
        first = first || (rank >= 3 && onnx_is_first(o, i));
    const char **names = alloc_array((size_t)count + 1, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] = first ? onnx_in_first(o, i) : onnx_in(o, i);
    if (first) {
        axis = onnx_axis(o, axis, rank);
        axis = !axis ? 0 : axis == rank - 1 ? 1 : axis + 1;
    }
    const char *all = onnx_add(o, "Concat", names, count, ONNX_ATTRS(ONNX_I("axis", axis)));
    if (first)
        onnx_give_first(o, 0, all);
    else
        onnx_give(o, 0, all);
    free(names);
}

static void convert_pack(struct onnx *o)
{
    int count = o->node->inputs_count;
    int64_t axis = node_attr_int(o->node, "axis", 0);
    const char **names = alloc_array((size_t)count + 1, sizeof(*names));
    for (int i = 0; i < count; i++)
        names[i] = unsqueeze(o, onnx_in(o, i), axis);
    onnx_give(o, 0, onnx_add(o, "Concat", names, count, ONNX_ATTRS(ONNX_I("axis", axis))));
    free(names);
}

static void convert_unpack(struct onnx *o)
{
    int count = o->node->outputs_count;
    int64_t axis = node_attr_int(o->node, "axis", 0);
    const char **parts = onnx_add_outputs(o, "Split", ONNX_IN(onnx_in(o, 0)), count,
                                          ONNX_ATTRS(ONNX_I("axis", axis)));
    for (int i = 0; i < count; i++)
        onnx_give(o, i, ONNX_ADD(o, "Squeeze", parts[i], onnx_ints(o, &axis, 1)));
}

/* ONNX counts in int64. */
static void give_count(struct onnx *o, const char *x)
{
    enum dtype dtype = dtype_base(o->node->output_types[0]);
    onnx_give(o, 0, dtype == I64 ? x : onnx_cast(o, x, dtype));
}

static void convert_shape(struct onnx *o)
{
    give_count(o, ONNX_ADD(o, "Shape", onnx_in(o, 0)));
}

static void convert_size(struct onnx *o)
{
    give_count(o, ONNX_ADD(o, "Size", onnx_in(o, 0)));
}

static void convert_tile(struct onnx *o)
{
    const char *times = onnx_cast(o, onnx_in(o, 1), I64);
    onnx_give(o, 0, ONNX_ADD(o, "Tile", onnx_in(o, 0), times));
}

const struct onnx_row onnx_layout_rows[] = {{"ConcatV2", convert_concat, NULL},
                                            {"ExpandDims", convert_expand_dims, NULL},
                                            {"Pack", convert_pack, NULL},
                                            {"Reshape", convert_reshape, NULL},
                                            {"Shape", convert_shape, NULL},
                                            {"Size", convert_size, NULL},
                                            {"Squeeze", convert_squeeze, NULL},
                                            {"Tile", convert_tile, NULL},
                                            {"Transpose", convert_transpose, NULL},
                                            {"Unpack", convert_unpack, NULL},
                                            {NULL, NULL, NULL}};
