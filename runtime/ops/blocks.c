/* blocks.c - blocks of space moved to the batch and back, tensors rolled, patches of images. */

#include "runtime/ops/internal.h"

/* As many dimensions as the input, the last ones (behind the blocks) the same. */
static bool infer_blocks(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *in = &infer->inputs[0];
    bool attribute = infer->node->inputs_count == 2;
    int64_t blocks = attribute ? 2 : op_infer_dim(infer, 1, 0);
    if (in->rank < 0)
        return true;
    op_infer_rank(infer, 0, in->rank);
    for (int d = 1 + (int)blocks; blocks >= 0 && d < in->rank; d++)
        infer->outputs[0].dims[d] = in->dims[d];
    return true;
}

/* The op that undoes it, with the same block sizes and pads. */
static bool undo(struct gradient *g, const char *op)
{
    struct edge dy = g->of_outputs[0];
    if (g->node->inputs_count == 2)
        return op_gradient_single(
            g, op_call(g, op, INPUTS(dy, gradient_x(g, 1)),
                       ATTRS(attr_int("block_size", node_attr_int(g->node, "block_size", 2)))));
    return op_gradient_single(g, op_call3(g, op, dy, gradient_x(g, 1), gradient_x(g, 2)));
}

static bool space_to_batch_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return undo(g, "BatchToSpace");
}
static bool space_to_batch_nd_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return undo(g, "BatchToSpaceND");
}
static bool batch_to_space_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return undo(g, "SpaceToBatch");
}
static bool batch_to_space_nd_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return undo(g, "SpaceToBatchND");
}

#define BLOCKS(name_, inputs_, attrs_, gradient_)                                              \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = "output:T", .attrs = attrs_,              \
        .infer = infer_blocks, .gradient = gradient_,                                          \
    }

const struct op op_space_to_batch =
    BLOCKS("SpaceToBatch", "input:T paddings:Tpaddings",
           "T:type Tpaddings:{int32,int64}=int32 block_size:int>=2", space_to_batch_gradient);
const struct op op_space_to_batch_nd =
    BLOCKS("SpaceToBatchND", "input:T block_shape:Tblock_shape paddings:Tpaddings",
           "T:type Tblock_shape:{int32,int64}=int32 Tpaddings:{int32,int64}=int32",
           space_to_batch_nd_gradient);
const struct op op_batch_to_space =
    BLOCKS("BatchToSpace", "input:T crops:Tidx",
           "T:type block_size:int>=2 Tidx:{int32,int64}=int32", batch_to_space_gradient);
const struct op op_batch_to_space_nd =
    BLOCKS("BatchToSpaceND", "input:T block_shape:Tblock_shape crops:Tcrops",
           "T:type Tblock_shape:{int32,int64}=int32 Tcrops:{int32,int64}=int32",
           batch_to_space_nd_gradient);

static bool roll_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge back = op_call1(g, "Neg", gradient_x(g, 1));
    return op_gradient_single(g, op_call3(g, "Roll", g->of_outputs[0], back, gradient_x(g, 2)));
}

const struct op op_roll = {
    .name = "Roll",
    .inputs = "input:T shift:Tshift axis:Taxis",
    .outputs = "output:T",
    .attrs = "T:type Tshift:{int32,int64} Taxis:{int32,int64}",
    .infer = op_infer_unchanged,
    .gradient = roll_gradient,
};

static bool infer_patches(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_rank(infer, 0, 4);
    infer->outputs[0].dims[0] = op_infer_dim(infer, 0, 0);
    return true;
}

/* The patches of the numbers of the pixels say where each element came from; 0: the padding. */
static bool patches_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    static const char *const names[] = {"ksizes", "strides", "rates", "padding"};
    struct edge x = gradient_x(g, 0), dy = g->of_outputs[0];
    struct edge flat = op_ints(g, (const int64_t[]){-1}, 1);
    struct edge shape = op_shape_of(g, x), one = op_int(g, 1);
    struct edge total = op_call2(g, "AddV2", op_call1(g, "Size", x), one);
    struct edge numbers = op_call2(g, "Reshape", op_call3(g, "Range", one, total, one), shape);
    struct attr attrs[ARRAY_LEN(names)];
    for (int i = 0; i < ARRAY_LEN(names); i++)
        attrs[i] = *node_attr(g->node, names[i]);
    struct edge places = op_call(g, "ExtractImagePatches", INPUTS(numbers), attrs, 4);
    struct edge sums = op_call3(g, "UnsortedSegmentSum", op_call2(g, "Reshape", dy, flat),
                                op_call2(g, "Reshape", places, flat), total);
    struct edge pixels = op_call3(g, "Slice", sums, op_ints(g, (const int64_t[]){1}, 1), flat);
    return op_gradient_single(g, op_call2(g, "Reshape", pixels, shape));
}

const struct op op_extract_image_patches = {
    .name = "ExtractImagePatches",
    .inputs = "images:T",
    .outputs = "patches:T",
    .attrs = "ksizes:list(int)>=4 strides:list(int)>=4 rates:list(int)>=4 "
             "T:{bfloat16,half,float,double,int8,int16,int32,int64,uint8,uint16,uint32,uint64,"
             "complex64,complex128,bool} padding:{'SAME','VALID'}",
    .infer = infer_patches,
    .gradient = patches_gradient,
};

static bool infer_ensured(struct infer *infer, struct error *err)
{
    (void)err;
    struct error ignored;
    const struct shape *promised = node_attr_shape(infer->node, "shape");
    infer->outputs[0] = infer->inputs[0];
    if (promised && !shape_merge(promised, &infer->inputs[0], &infer->outputs[0], &ignored))
        infer->outputs[0] = SHAPE_UNKNOWN; /* fails when it is run */
    return true;
}

const struct op op_ensure_shape = {
    .name = "EnsureShape",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "shape:shape T:type",
    .infer = infer_ensured,
    .gradient = op_gradient_pass,
};

const struct op op_snapshot = {
    .name = "Snapshot",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:type",
    .infer = op_infer_unchanged,
};

const struct op op_guarantee_const = {
    .name = "GuaranteeConst",
    .inputs = "input:T",
    .outputs = "output:T",
    .attrs = "T:type",
    .flags = OP_STATEFUL,
    .infer = op_infer_unchanged,
};
