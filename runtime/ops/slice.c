/* slice.c - parts of tensors, joins, and elements in another order. */

#include "runtime/ops/internal.h"

/* --- joins and splits --- */

static bool infer_pack(struct infer *infer, struct error *err)
{
    struct shape in = SHAPE_UNKNOWN;
    for (int i = 0; i < infer->node->inputs_count; i++)
        if (!shape_merge(&in, &infer->inputs[i], &in, err))
            return false;
    if (in.rank < 0 || in.rank == LIMIT_TENSOR_RANK)
        return true;
    int64_t axis = node_attr_int(infer->node, "axis", 0);
    axis += axis < 0 ? in.rank + 1 : 0;
    if (axis < 0 || axis > in.rank)
        return true; /* running it says what is wrong */
    op_infer_rank(infer, 0, in.rank + 1);
    for (int d = 0; d <= in.rank; d++)
        infer->outputs[0].dims[d] =
            d == axis ? infer->node->inputs_count : in.dims[d > axis ? d - 1 : d];
    return true;
}

static bool pack_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int64_t axis = node_attr_int(g->node, "axis", 0);
    struct edge parts =
        op_call(g, "Unpack", INPUTS(g->of_outputs[0]),
                ATTRS(attr_int("num", g->node->inputs_count), attr_int("axis", axis)));
    for (int i = 0; i < g->node->inputs_count; i++)
        g->of_inputs[i] = builder_output(parts, i);
    return builder_ok(&g->build);
}

const struct op op_pack = {
    .name = "Pack",
    .inputs = "values:N*T",
    .outputs = "output:T",
    .attrs = "N:int>=1 T:type axis:int=0",
    .infer = infer_pack,
    .gradient = pack_gradient,
};

static bool infer_unpack(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int64_t axis = node_attr_int(infer->node, "axis", 0);
    axis += axis < 0 ? in->rank : 0;
    if (in->rank < 1 || axis < 0 || axis >= in->rank)
        return true;
    for (int i = 0; i < infer->node->outputs_count; i++) {
        infer->outputs[i].rank = in->rank - 1;
        for (int d = 0; d < in->rank - 1; d++)
            infer->outputs[i].dims[d] = in->dims[d < axis ? d : d + 1];
    }
    return true;
}

static bool unpack_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int count = g->node->outputs_count;
    struct edge *parts =
        arena_array(graph_arena(g->build.graph), (size_t)count + 1, sizeof(*parts));
    for (int i = 0; i < count; i++)
        parts[i] = op_gradient_or_zeros(g, i);
    int64_t axis = node_attr_int(g->node, "axis", 0);
    return op_gradient_single(g, op_call(g, "Pack", parts, count,
                                         ATTRS(attr_int("N", count), attr_int("axis", axis))));
}

const struct op op_unpack = {
    .name = "Unpack",
    .inputs = "value:T",
    .outputs = "output:num*T",
    .attrs = "num:int>=0 T:type axis:int=0",
    .infer = infer_unpack,
    .gradient = unpack_gradient,
};

static bool infer_concat(struct infer *infer, int axis_input, int first, int count)
{
    int rank = -1;
    for (int i = first; i < first + count; i++)
        if (infer->inputs[i].rank >= 0)
            rank = infer->inputs[i].rank;
    if (rank < 1)
        return true;
    op_infer_rank(infer, 0, rank);
    int64_t axis;
    if (!op_infer_value(infer, axis_input, &axis))
        return true;
    axis += axis < 0 ? rank : 0;
    struct shape *out = &infer->outputs[0];
    for (int d = 0; d < rank; d++) {
        int64_t sum = 0;
        for (int i = first; i < first + count; i++) {
            int64_t dim = infer->inputs[i].rank == rank ? infer->inputs[i].dims[d] : -1;
            if (d != axis && dim >= 0)
                out->dims[d] = dim;
            sum = shape_sum(sum, dim);
        }
        if (d == axis)
            out->dims[d] = sum;
    }
    return true;
}

static bool infer_concat_v2(struct infer *infer, struct error *err)
{
    (void)err;
    int count = infer->node->inputs_count - 1;
    return infer_concat(infer, count, 0, count);
}

static bool infer_concat_v1(struct infer *infer, struct error *err)
{
    (void)err;
    return infer_concat(infer, 0, 1, infer->node->inputs_count - 1);
}

/* The part of the gradient that came from each input: Slice at ConcatOffset. */
static bool concat_gradient(struct gradient *g, int axis_input, int first)
{
    int count = g->node->inputs_count - 1;
    struct arena *arena = graph_arena(g->build.graph);
    struct edge dy = g->of_outputs[0], axis = gradient_x(g, axis_input);
    if (op_edge_type(axis) == I64)
        axis = op_call(g, "Cast", INPUTS(axis), ATTRS(attr_type("DstT", I32)));
    axis = op_call2(g, "FloorMod", axis, op_call1(g, "Rank", dy));
    const struct edge *values = g->node->inputs + first;
    struct edge shapes = op_call(g, "ShapeN", values, count, ATTRS(attr_int("N", count)));
    struct edge *offset_inputs = arena_array(arena, (size_t)count + 1, sizeof(*offset_inputs));
    offset_inputs[0] = axis;
    for (int i = 0; i < count; i++)
        offset_inputs[i + 1] = builder_output(shapes, i);
    struct edge offsets =
        op_call(g, "ConcatOffset", offset_inputs, count + 1, ATTRS(attr_int("N", count)));
    for (int i = 0; i < count; i++)
        g->of_inputs[first + i] =
            op_call3(g, "Slice", dy, builder_output(offsets, i), builder_output(shapes, i));
    return builder_ok(&g->build);
}

static bool concat_v2_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return concat_gradient(g, g->node->inputs_count - 1, 0);
}

static bool concat_v1_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return concat_gradient(g, 0, 1);
}

const struct op op_concat_v2 = {
    .name = "ConcatV2",
    .inputs = "values:N*T axis:Tidx",
    .outputs = "output:T",
    .attrs = "N:int>=2 T:type Tidx:{int32,int64}=int32",
    .infer = infer_concat_v2,
    .gradient = concat_v2_gradient,
};

const struct op op_concat = {
    .name = "Concat",
    .inputs = "concat_dim:int32 values:N*T",
    .outputs = "output:T",
    .attrs = "N:int>=2 T:type",
    .infer = infer_concat_v1,
    .gradient = concat_v1_gradient,
};

static bool infer_concat_offset(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        infer->outputs[i] = infer->inputs[i + 1];
    return true;
}

const struct op op_concat_offset = {
    .name = "ConcatOffset",
    .inputs = "concat_dim:int32 shape:N*shape_type",
    .outputs = "offset:N*shape_type",
    .attrs = "N:int>=2 shape_type:{int32,int64}=int32",
    .infer = infer_concat_offset,
    .no_gradient = true,
};

static bool infer_split_axis(struct infer *infer, int value, int axis_input, bool equal)
{
    const struct shape *in = &infer->inputs[value];
    int count = infer->node->outputs_count;
    int64_t axis = 0;
    if (in->rank < 1)
        return true;
    bool known = op_infer_value(infer, axis_input, &axis);
    axis += known && axis < 0 ? in->rank : 0;
    for (int i = 0; i < count; i++) {
        op_infer_rank(infer, i, in->rank);
        for (int d = 0; known && d < in->rank; d++)
            infer->outputs[i].dims[d] = d != axis                   ? in->dims[d]
                                        : equal && in->dims[d] >= 0 ? in->dims[d] / count
                                                                    : -1;
    }
    return true;
}

static bool infer_split(struct infer *infer, struct error *err)
{
    (void)err;
    return infer_split_axis(infer, 1, 0, true);
}

static bool infer_split_v(struct infer *infer, struct error *err)
{
    (void)err;
    return infer_split_axis(infer, 0, 2, false);
}

static struct edge joined_gradients(struct gradient *g, struct edge axis)
{
    int count = g->node->outputs_count;
    if (count == 1)
        return g->of_outputs[0];
    struct edge *parts =
        arena_array(graph_arena(g->build.graph), (size_t)count + 1, sizeof(*parts));
    for (int i = 0; i < count; i++)
        parts[i] = op_gradient_or_zeros(g, i);
    parts[count] = axis;
    return op_call(g, "ConcatV2", parts, count + 1, ATTRS(attr_int("N", count)));
}

static bool split_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[1] = joined_gradients(g, gradient_x(g, 0));
    return builder_ok(&g->build);
}

static bool split_v_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[0] = joined_gradients(g, gradient_x(g, 2));
    return builder_ok(&g->build);
}

const struct op op_split = {
    .name = "Split",
    .inputs = "split_dim:int32 value:T",
    .outputs = "output:num_split*T",
    .attrs = "num_split:int>=1 T:type",
    .infer = infer_split,
    .gradient = split_gradient,
};

const struct op op_split_v = {
    .name = "SplitV",
    .inputs = "value:T size_splits:Tlen split_dim:int32",
    .outputs = "output:num_split*T",
    .attrs = "num_split:int>=1 T:type Tlen:{int8,int32,int64}=int64",
    .infer = infer_split_v,
    .gradient = split_v_gradient,
};

/* --- parts --- */

static bool infer_slice(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    int64_t begin[LIMIT_TENSOR_RANK], size[LIMIT_TENSOR_RANK];
    int begins, sizes;
    if (in->rank < 0)
        return true;
    op_infer_rank(infer, 0, in->rank);
    if (!op_infer_values(infer, 2, size, &sizes) || sizes != in->rank)
        return true;
    bool known = op_infer_values(infer, 1, begin, &begins) && begins == in->rank;
    for (int d = 0; d < in->rank; d++) {
        if (size[d] >= 0)
            infer->outputs[0].dims[d] = size[d];
        else if (known && begin[d] >= 0 && begin[d] <= in->dims[d])
            infer->outputs[0].dims[d] = in->dims[d] - begin[d];
    }
    return true;
}

static bool slice_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge x = gradient_x(g, 0), begin = gradient_x(g, 1), dy = g->of_outputs[0];
    int index = op_edge_type(begin);
    struct edge shape = op_call(g, "Shape", INPUTS(x), ATTRS(attr_type("out_type", index)));
    struct edge taken = op_call(g, "Shape", INPUTS(dy), ATTRS(attr_type("out_type", index)));
    struct edge after = op_call2(g, "Sub", op_call2(g, "Sub", shape, begin), taken);
    struct edge paddings =
        op_call(g, "Pack", INPUTS(begin, after), ATTRS(attr_int("N", 2), attr_int("axis", 1)));
    return op_gradient_single(g, op_call2(g, "Pad", dy, paddings));
}

const struct op op_slice = {
    .name = "Slice",
    .inputs = "input:T begin:Index size:Index",
    .outputs = "output:T",
    .attrs = "T:type Index:{int32,int64}",
    .infer = infer_slice,
    .gradient = slice_gradient,
};

#define STRIDED_ATTRS(index)                                                                   \
    "T:type Index:" index " begin_mask:int=0 end_mask:int=0 ellipsis_mask:int=0 "              \
    "new_axis_mask:int=0 shrink_axis_mask:int=0"

static const char *const strided_masks[] = {"begin_mask", "end_mask", "ellipsis_mask",
                                            "new_axis_mask", "shrink_axis_mask"};

/* What is known of a strided slice's entries. */
struct entries {
    int64_t begin[LIMIT_TENSOR_RANK], end[LIMIT_TENSOR_RANK], step[LIMIT_TENSOR_RANK];
    bool begins, ends, steps; /* they are constants */
    int count;
    int64_t masks[5]; /* as strided_masks */
};

static bool has(const struct entries *e, int mask, int entry)
{
    return e->masks[mask] >> entry & 1;
}

static bool read_entries(const struct infer *infer, struct entries *e)
{
    const struct shape *vector = &infer->inputs[1];
    int begins = 0, ends = 0, steps = 0;
    for (int i = 0; i < ARRAY_LEN(strided_masks); i++)
        e->masks[i] = node_attr_int(infer->node, strided_masks[i], 0);
    e->begins = op_infer_values(infer, 1, e->begin, &begins);
    e->ends = op_infer_values(infer, 2, e->end, &ends);
    e->steps = op_infer_values(infer, 3, e->step, &steps);
    if (vector->rank != 1 || vector->dims[0] < 0 || vector->dims[0] > LIMIT_TENSOR_RANK)
        return false;
    e->count = (int)vector->dims[0];
    return (!e->begins || begins == e->count) && (!e->ends || ends == e->count) &&
           (!e->steps || steps == e->count);
}

/* How many positions entry `i` takes of `size`; -1 where that shows at the run only. */
static int64_t entry_size(const struct entries *e, int i, int64_t size)
{
    bool from_start = has(e, 0, i), to_end = has(e, 1, i);
    if (!e->steps || e->step[i] == 0 || size < 0 || (!from_start && !e->begins) ||
        (!to_end && !e->ends))
        return -1;
    int64_t step = e->step[i], low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    int64_t begin = from_start ? (step > 0 ? low : high) : e->begin[i];
    int64_t end = to_end ? (step > 0 ? high : low) : e->end[i];
    if (!from_start)
        begin += begin < 0 ? size : 0;
    if (!to_end)
        end += end < 0 ? size : 0;
    begin = begin < low ? low : (begin > high ? high : begin);
    end = end < low ? low : (end > high ? high : end);
    int64_t length = step > 0 ? end - begin : begin - end;
    return length <= 0 ? 0 : 1 - (length - 1) / (step > 0 ? -step : step);
}

static bool infer_strided(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    struct entries e;
    struct shape out = SHAPE_SCALAR;
    if (in->rank < 0 || !read_entries(infer, &e))
        return true;
    int taken = 0, d = 0;
    bool seen = false;
    for (int i = 0; i < e.count; i++) {
        taken += !has(&e, 2, i) && !has(&e, 3, i);
        seen |= has(&e, 2, i);
    }
    if (taken > in->rank)
        return true;
    for (int i = 0; i <= e.count; i++) {
        bool at_end = i == e.count, rest = at_end ? !seen : has(&e, 2, i);
        int whole = rest ? in->rank - taken : 0;
        if (out.rank + whole + 1 > LIMIT_TENSOR_RANK)
            return true;
        for (int k = 0; k < whole; k++)
            out.dims[out.rank++] = in->dims[d++];
        if (at_end || rest)
            continue;
        if (has(&e, 3, i))
            out.dims[out.rank++] = 1;
        else if (has(&e, 4, i))
            d++;
        else
            out.dims[out.rank++] = entry_size(&e, i, in->dims[d++]);
    }
    infer->outputs[0] = out;
    return true;
}

static struct edge strided(struct gradient *g, const char *op, const struct edge *inputs,
                           int count)
{
    struct attr masks[ARRAY_LEN(strided_masks)];
    int64_t values[ARRAY_LEN(strided_masks)];
    for (int i = 0; i < ARRAY_LEN(strided_masks); i++) {
        values[i] = node_attr_int(g->node, strided_masks[i], 0);
        masks[i] = (struct attr){
            .name = strided_masks[i], .kind = ATTR_INT, .count = 1, .ints = &values[i]};
    }
    return op_call(g, op, inputs, count, masks, ARRAY_LEN(strided_masks));
}

static bool strided_slice_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    int index = op_edge_type(gradient_x(g, 1));
    struct edge shape =
        op_call(g, "Shape", INPUTS(gradient_x(g, 0)), ATTRS(attr_type("out_type", index)));
    return op_gradient_single(g, strided(g, "StridedSliceGrad",
                                         INPUTS(shape, gradient_x(g, 1), gradient_x(g, 2),
                                                gradient_x(g, 3), g->of_outputs[0])));
}

const struct op op_strided_slice = {
    .name = "StridedSlice",
    .inputs = "input:T begin:Index end:Index strides:Index",
    .outputs = "output:T",
    .attrs = STRIDED_ATTRS("{int16,int32,int64}"),
    .infer = infer_strided,
    .gradient = strided_slice_gradient,
};

static bool strided_slice_grad_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    g->of_inputs[4] =
        strided(g, "StridedSlice",
                INPUTS(g->of_outputs[0], gradient_x(g, 1), gradient_x(g, 2), gradient_x(g, 3)));
    return builder_ok(&g->build);
}

const struct op op_strided_slice_grad = {
    .name = "StridedSliceGrad",
    .inputs = "shape:Index begin:Index end:Index strides:Index dy:T",
    .outputs = "output:T",
    .attrs = STRIDED_ATTRS(OP_INDEX),
    .infer = op_infer_from_first,
    .gradient = strided_slice_grad_gradient,
};
