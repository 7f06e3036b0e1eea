/* onnx_slice.c - parts of tensors, and more around them. */

#include "runtime/onnx/internal.h"

/* x[starts:ends:steps] along the axes. */
static const char *slice(struct onnx *o, const char *x, const int64_t *starts,
                         const int64_t *ends, const int64_t *axes, const int64_t *steps,
                         int count)
{
    return ONNX_ADD(o, "Slice", x, onnx_ints(o, starts, count), onnx_ints(o, ends, count),
                    onnx_ints(o, axes, count), onnx_ints(o, steps, count));
}

static void convert_slice(struct onnx *o)
{
    int64_t begin[LIMIT_TENSOR_RANK], size[LIMIT_TENSOR_RANK], axes[LIMIT_TENSOR_RANK],
        steps[LIMIT_TENSOR_RANK];
    int rank, sizes, count = 0;
    if (!onnx_constant_ints(o, 1, begin, LIMIT_TENSOR_RANK, &rank) ||
        !onnx_constant_ints(o, 2, size, LIMIT_TENSOR_RANK, &sizes))
        return;
    const struct onnx_value *value = onnx_value(o, o->node->inputs[0]);
    const struct shape *shape = onnx_shape(o, 0);
    if (value->last_of_rows && rank == 3 && begin[0] == shape->dims[0] - 1 && !begin[1] &&
        !begin[2] && size[0] == 1 && size[1] < 0 && size[2] < 0) {
        onnx_give(o, 0, value->last_of_rows);
        return;
    }
    for (int d = 0; d < rank; d++) {
        if (!begin[d] && size[d] < 0)
            continue; /* all of it */
        begin[count] = begin[d];
        size[count] = size[d] < 0 ? INT64_MAX : begin[d] + size[d];
        axes[count] = d;
        steps[count++] = 1;
    }
    const char *x = onnx_in(o, 0);
    onnx_give(o, 0, count ? slice(o, x, begin, size, axes, steps, count) : x);
}

/* What a StridedSlice says, dimension by dimension of its input. */
struct strided {
    int64_t starts[LIMIT_TENSOR_RANK], ends[LIMIT_TENSOR_RANK], axes[LIMIT_TENSOR_RANK],
        steps[LIMIT_TENSOR_RANK], dropped[LIMIT_TENSOR_RANK], added[LIMIT_TENSOR_RANK];
    int count, dropped_count, added_count;
};

static bool has_bit(struct onnx *o, const char *mask, int index)
{
    return node_attr_int(o->node, mask, 0) >> index & 1;
}

static void take_dimension(struct onnx *o, struct strided *s, int index, int axis,
                           int64_t begin, int64_t end, int64_t step)
{
    bool drop = has_bit(o, "shrink_axis_mask", index);
    s->axes[s->count] = axis;
    s->steps[s->count] = drop ? 1 : step;
    s->starts[s->count] = begin;
    s->ends[s->count] = end;
    if (has_bit(o, "begin_mask", index) && !drop)
        s->starts[s->count] = step > 0 ? 0 : INT64_MAX;
    if (has_bit(o, "end_mask", index) && !drop)
        s->ends[s->count] = step > 0 ? INT64_MAX : INT64_MIN;
    if (drop) {
        s->ends[s->count] = begin == -1 ? INT64_MAX : begin + 1;
        s->dropped[s->dropped_count++] = axis;
    }
    s->count++;
}

static void convert_strided_slice(struct onnx *o)
{
    int64_t begin[LIMIT_TENSOR_RANK], end[LIMIT_TENSOR_RANK], step[LIMIT_TENSOR_RANK];
    struct strided s = {0};
    int count, same, rank = onnx_shape(o, 0)->rank, axis = 0, out = 0, own = 0;
    if (!onnx_constant_ints(o, 1, begin, LIMIT_TENSOR_RANK, &count) ||
        !onnx_constant_ints(o, 2, end, LIMIT_TENSOR_RANK, &same) ||
        !onnx_constant_ints(o, 3, step, LIMIT_TENSOR_RANK, &same))
        return;
    if (rank < 0) {
        onnx_refuse(o, "the dimensions of its input are not known");
        return;
    }
    for (int i = 0; i < count; i++)
        own += !has_bit(o, "new_axis_mask", i) && !has_bit(o, "ellipsis_mask", i);
    for (int i = 0; i < count; i++) {
        if (has_bit(o, "ellipsis_mask", i)) {
            axis += rank - own;
            out += rank - own;
        } else if (has_bit(o, "new_axis_mask", i)) {
            s.added[s.added_count++] = out++;
        } else {
            out += !has_bit(o, "shrink_axis_mask", i);
            take_dimension(o, &s, i, axis++, begin[i], end[i], step[i]);
        }
    }
    const char *x = onnx_in(o, 0);
    if (s.count)
        x = slice(o, x, s.starts, s.ends, s.axes, s.steps, s.count);
    if (s.dropped_count)
        x = ONNX_ADD(o, "Squeeze", x, onnx_ints(o, s.dropped, s.dropped_count));
    if (s.added_count)
        x = ONNX_ADD(o, "Unsqueeze", x, onnx_ints(o, s.added, s.added_count));
    onnx_give(o, 0, x);
}

static void convert_reverse(struct onnx *o)
{
    int64_t axes[LIMIT_TENSOR_RANK], starts[LIMIT_TENSOR_RANK], ends[LIMIT_TENSOR_RANK],
        steps[LIMIT_TENSOR_RANK];
    int count;
    if (!onnx_constant_ints(o, 1, axes, LIMIT_TENSOR_RANK, &count))
        return;
    for (int i = 0; i < count; i++) {
        starts[i] = INT64_MAX;
        ends[i] = INT64_MIN;
        steps[i] = -1;
    }
    const char *x = onnx_in(o, 0);
    onnx_give(o, 0, count ? slice(o, x, starts, ends, axes, steps, count) : x);
}

static void give_parts(struct onnx *o, const char **parts)
{
    for (int i = 0; i < o->node->outputs_count; i++)
        onnx_give(o, i, parts[i]);
}

static void convert_split(struct onnx *o)
{
    int64_t axis;
    int count;
    if (onnx_constant_ints(o, 0, &axis, 1, &count) && count == 1)
        give_parts(o,
                   onnx_add_outputs(o, "Split", ONNX_IN(onnx_in(o, 1)), o->node->outputs_count,
                                    ONNX_ATTRS(ONNX_I("axis", axis))));
}

static void convert_split_v(struct onnx *o)
{
    enum { PARTS_MAX = 4096 };
    int64_t axis, sizes[PARTS_MAX], known = 0;
    int count, parts, open = -1;
    if (!onnx_constant_ints(o, 1, sizes, PARTS_MAX, &parts) ||
        !onnx_constant_ints(o, 2, &axis, 1, &count) || count != 1)
        return;
    axis = onnx_axis(o, axis, onnx_shape(o, 0)->rank);
    for (int i = 0; i < parts; i++) {
        if (sizes[i] < 0)
            open = i;
        else
            known += sizes[i];
    }
    if (open >= 0) {
        sizes[open] = onnx_shape(o, 0)->dims[axis] - known;
        if (sizes[open] < 0)
            onnx_refuse(o, "the size of part %d is not known", open);
    }
    give_parts(o,
               onnx_add_outputs(o, "Split", ONNX_IN(onnx_in(o, 0), onnx_ints(o, sizes, parts)),
                                o->node->outputs_count, ONNX_ATTRS(ONNX_I("axis", axis))));
}

/* --- by index --- */

static void convert_gather(struct onnx *o)
{
    int64_t axis = 0;
    int count;
    if (node_attr_int(o->node, "batch_dims", 0))
        onnx_refuse(o, "its batch_dims is not 0");
    if (o->node->inputs_count > 2 && !onnx_constant_ints(o, 2, &axis, 1, &count))
        return;
    onnx_give(o, 0,
              onnx_add(o, "Gather", ONNX_IN(onnx_in(o, 0), onnx_in(o, 1)),
                       ONNX_ATTRS(ONNX_I("axis", axis))));
}

static void convert_one_hot(struct onnx *o)
{
    const char *depth = onnx_cast(o, onnx_in(o, 1), I64);
    int64_t zero = 0;
    const char *off = ONNX_ADD(o, "Unsqueeze", onnx_in(o, 3), onnx_ints(o, &zero, 1));
    const char *on = ONNX_ADD(o, "Unsqueeze", onnx_in(o, 2), onnx_ints(o, &zero, 1));
    const char *values = onnx_add(o, "Concat", ONNX_IN(off, on), ONNX_ATTRS(ONNX_I("axis", 0)));
    onnx_give(o, 0,
              onnx_add(o, "OneHot", ONNX_IN(onnx_in(o, 0), depth, values),
                       ONNX_ATTRS(ONNX_I("axis", node_attr_int(o->node, "axis", -1)))));
}

/* --- borders --- */

static void convert_pad(struct onnx *o)
{
    int64_t sides[2 * LIMIT_TENSOR_RANK], pads[2 * LIMIT_TENSOR_RANK];
    int count, rank = onnx_shape(o, 0)->rank;
    const char *mode = node_attr_string(o->node, "mode", "CONSTANT");
    bool first = rank >= 3 && onnx_is_first(o, 0);
    if (!onnx_constant_ints(o, 1, sides, ARRAY_LEN(sides), &count))
        return;
    if (!strcmp(mode, "SYMMETRIC"))
        onnx_refuse(o, "its mode SYMMETRIC is none of ONNX's");
    for (int d = 0; d < count / 2; d++) {
        int to = !first || !d ? d : d == rank - 1 ? 1 : d + 1;
        pads[to] = sides[2 * d];
        pads[count / 2 + to] = sides[2 * d + 1];
    }
    const char *x = first ? onnx_in_first(o, 0) : onnx_in(o, 0);
    const char *all = onnx_ints(o, pads, count);
    if (!strcmp(mode, "REFLECT"))
        x = onnx_add(o, "Pad", ONNX_IN(x, all), ONNX_ATTRS(ONNX_S("mode", "reflect")));
    else if (o->node->inputs_count > 2)
        x = ONNX_ADD(o, "Pad", x, all, onnx_in(o, 2));
    else
        x = ONNX_ADD(o, "Pad", x, all);
    if (first)
        onnx_give_first(o, 0, x);
    else
        onnx_give(o, 0, x);
}

const struct onnx_row onnx_slice_rows[] = {{"Gather", convert_gather, NULL},
                                           {"GatherV2", convert_gather, NULL},
                                           {"MirrorPad", convert_pad, NULL},
                                           {"OneHot", convert_one_hot, NULL},
                                           {"Pad", convert_pad, NULL},
                                           {"PadV2", convert_pad, NULL},
                                           {"ResourceGather", convert_gather, NULL},
                                           {"ReverseV2", convert_reverse, NULL},
                                           {"Slice", convert_slice, NULL},
                                           {"Split", convert_split, NULL},
                                           {"SplitV", convert_split_v, NULL},
                                           {"StridedSlice", convert_strided_slice, NULL},
                                           {NULL, NULL, NULL}};
