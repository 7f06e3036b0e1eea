/* image.c - images resized, cropped and recoloured. */

#include "runtime/ops/internal.h"

#define IMAGE_TYPES "{int8,uint8,int16,uint16,int32,int64,half,float,double,bfloat16}"
#define CORNERS "align_corners:bool=false half_pixel_centers:bool=false"

/* (batch, height, width, channels) of input 0 with the size in input 1, as far as known. */
static bool infer_resize(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t size[LIMIT_TENSOR_RANK] = {-1, -1};
    int count;
    if (op_infer_values(infer, 1, size, &count) && count != 2)
        return true;
    infer->outputs[0] =
        SHAPE(op_infer_dim(infer, 0, 0), size[0], size[1], op_infer_dim(infer, 0, 3));
    return true;
}

/* `op` of two inputs with the attributes of how pixels lie. */
static struct edge resize_back(struct gradient *g, const char *op, struct edge second)
{
    return op_call(
        g, op, INPUTS(g->of_outputs[0], second),
        ATTRS(attr_bool("align_corners", node_attr_bool(g->node, "align_corners", false)),
              attr_bool("half_pixel_centers",
                        node_attr_bool(g->node, "half_pixel_centers", false))));
}

static bool bilinear_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    if (!(DTYPES_FLOAT & BIT(op_edge_type(gradient_x(g, 0)))))
        return true;
    return op_gradient_single(g, resize_back(g, "ResizeBilinearGrad", gradient_x(g, 0)));
}

static bool bicubic_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    enum dtype type = op_edge_type(gradient_x(g, 0));
    if (type != F32 && type != F64)
        return true;
    return op_gradient_single(g, resize_back(g, "ResizeBicubicGrad", gradient_x(g, 0)));
}

/* (height, width) of input 0 as a vector. */
static struct edge size_of(struct gradient *g)
{
    return op_call3(g, "Slice", op_shape_of(g, gradient_x(g, 0)),
                    op_ints(g, (const int64_t[]){1}, 1), op_ints(g, (const int64_t[]){2}, 1));
}

static bool nearest_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    return op_gradient_single(g, resize_back(g, "ResizeNearestNeighborGrad", size_of(g)));
}

#define RESIZE(name_, output_, attrs_, gradient_)                                              \
    {                                                                                          \
        .name = name_, .inputs = "images:T size:int32", .outputs = "resized_images:" output_,  \
        .attrs = "T:" IMAGE_TYPES " " attrs_, .flags = OP_EXPENSIVE, .infer = infer_resize,    \
        .gradient = gradient_,                                                                 \
    }
#define RESIZE_GRAD(name_, types_, ends_)                                                      \
    {                                                                                          \
        .name = name_, .inputs = "grads:float original_image:T", .outputs = "output:T",        \
        .attrs = "T:" types_ " " CORNERS, .flags = OP_EXPENSIVE, .infer = op_infer_second,     \
        .no_gradient = ends_,                                                                  \
    }

const struct op op_resize_bilinear =
    RESIZE("ResizeBilinear", "float", CORNERS, bilinear_gradient);
const struct op op_resize_bicubic = RESIZE("ResizeBicubic", "float", CORNERS, bicubic_gradient);
const struct op op_resize_nearest_neighbor =
    RESIZE("ResizeNearestNeighbor", "T", CORNERS, nearest_gradient);
const struct op op_resize_area =
    RESIZE("ResizeArea", "float", "align_corners:bool=false", NULL);
const struct op op_resize_bilinear_grad =
    RESIZE_GRAD("ResizeBilinearGrad", "{float,bfloat16,half,double}", true);
const struct op op_resize_bicubic_grad =
    RESIZE_GRAD("ResizeBicubicGrad", "{float,double}", false);
const struct op op_resize_nearest_neighbor_grad = {
    .name = "ResizeNearestNeighborGrad",
    .inputs = "grads:T size:int32",
    .outputs = "output:T",
    .attrs = "T:{uint8,int8,int32,half,float,double,bfloat16} " CORNERS,
    .flags = OP_EXPENSIVE,
    .infer = infer_resize,
};

/* --- crops --- */

static bool infer_crop(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t size[LIMIT_TENSOR_RANK] = {-1, -1};
    int count;
    if (op_infer_values(infer, 3, size, &count) && count != 2)
        return true;
    infer->outputs[0] =
        SHAPE(op_infer_dim(infer, 1, 0), size[0], size[1], op_infer_dim(infer, 0, 3));
    return true;
}

static bool crop_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge image = gradient_x(g, 0), boxes = gradient_x(g, 1), owner = gradient_x(g, 2);
    struct edge dy = g->of_outputs[0];
    enum dtype type = op_edge_type(image);
    if (type == F16 || type == F32 || type == F64)
        g->of_inputs[0] = op_call(
            g, "CropAndResizeGradImage", INPUTS(dy, boxes, owner, op_shape_of(g, image)),
            ATTRS(attr_type("T", (int)type),
                  attr_string("method", node_attr_string(g->node, "method", "bilinear"))));
    g->of_inputs[1] =
        op_call(g, "CropAndResizeGradBoxes", INPUTS(dy, image, boxes, owner), NO_ATTRS);
    return builder_ok(&g->build);
}

const struct op op_crop_and_resize = {
    .name = "CropAndResize",
    .inputs = "image:T boxes:float box_ind:int32 crop_size:int32",
    .outputs = "crops:float",
    .attrs = "T:{uint8,uint16,int8,int16,int32,int64,half,float,double} "
             "method:{'bilinear','nearest'}='bilinear' extrapolation_value:float=0",
    .flags = OP_EXPENSIVE,
    .infer = infer_crop,
    .gradient = crop_gradient,
};

static bool infer_crop_grad_image(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 3);
}

const struct op op_crop_and_resize_grad_image = {
    .name = "CropAndResizeGradImage",
    .inputs = "grads:float boxes:float box_ind:int32 image_size:int32",
    .outputs = "output:T",
    .attrs = "T:{float,half,double} method:{'bilinear','nearest'}='bilinear'",
    .flags = OP_EXPENSIVE,
    .infer = infer_crop_grad_image,
};

static bool infer_boxes(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->inputs[2];
    return true;
}

const struct op op_crop_and_resize_grad_boxes = {
    .name = "CropAndResizeGradBoxes",
    .inputs = "grads:float image:T boxes:float box_ind:int32",
    .outputs = "output:float",
    .attrs = "T:{uint8,uint16,int8,int16,int32,int64,half,float,double} "
             "method:{'bilinear'}='bilinear'",
    .flags = OP_EXPENSIVE,
    .infer = infer_boxes,
};

/* --- colours --- */

/* 1 where both hold. */
static struct edge both(struct gradient *g, struct edge a, struct edge b, enum dtype type)
{
    return op_call(g, "Cast", INPUTS(op_call2(g, "LogicalAnd", a, b)),
                   ATTRS(attr_type("DstT", (int)type)));
}

/* Which of the three channels is the greatest (`sign` 1: ties go to red, then green) and the
 * least (-1: ties go to blue, then green). */
static void rank_channels(struct gradient *g, const struct edge *c, bool greatest,
                          struct edge *mask)
{
    enum dtype type = op_edge_type(c[0]);
    const char *beats = greatest ? "Greater" : "Less",
               *ties = greatest ? "GreaterEqual" : "LessEqual";
    int first = greatest ? 0 : 2, last = greatest ? 2 : 0;
    mask[first] =
        both(g, op_call2(g, ties, c[first], c[1]), op_call2(g, ties, c[first], c[last]), type);
    mask[1] =
        both(g, op_call2(g, beats, c[1], c[first]), op_call2(g, ties, c[1], c[last]), type);
    mask[last] =
        both(g, op_call2(g, beats, c[last], c[first]), op_call2(g, beats, c[last], c[1]), type);
}

/* a b - c d over e, 0 where e is. */
static struct edge quotient(struct gradient *g, struct edge a, struct edge b, struct edge c,
                            struct edge d, struct edge e)
{
    return op_call2(g, "DivNoNan",
                    op_call2(g, "Sub", op_call2(g, "Mul", a, b), op_call2(g, "Mul", c, d)), e);
}

static struct edge channels_of(struct gradient *g, struct edge x)
{
    return op_call(g, "Unpack", INPUTS(x), ATTRS(attr_int("num", 3), attr_int("axis", -1)));
}

/*
 * value = max; saturation = (max - min) / max; hue = (difference of the two channels behind the
 * greatest) / (6 (max - min)) and a constant.
 */
static bool rgb_to_hsv_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge c[3], dy[3], high[3], low[3], sums[3];
    struct edge in = channels_of(g, gradient_x(g, 0)), grad = channels_of(g, g->of_outputs[0]);
    struct edge max, range, over;
    for (int i = 0; i < 3; i++) {
        c[i] = builder_output(in, i);
        dy[i] = builder_output(grad, i);
    }
    rank_channels(g, c, true, high);
    rank_channels(g, c, false, low);
    max = op_call2(g, "Maximum", c[0], op_call2(g, "Maximum", c[1], c[2]));
    range = op_call2(g, "Sub", max,
                     op_call2(g, "Minimum", c[0], op_call2(g, "Minimum", c[1], c[2])));
    /* The numerator of hue: for each greatest channel the next minus the one after. */
    for (int i = 0; i < 3; i++)
        sums[i] =
            op_call2(g, "Mul", high[i], op_call2(g, "Sub", c[(i + 1) % 3], c[(i + 2) % 3]));
    over = op_call2(g, "AddV2", sums[0], op_call2(g, "AddV2", sums[1], sums[2]));
    struct edge six = op_call2(g, "Mul", op_number(g, range, 6), op_call1(g, "Square", range));
    struct edge square = op_call1(g, "Square", max);
    for (int i = 0; i < 3; i++) {
        struct edge dover = op_call2(g, "Sub", high[(i + 2) % 3], high[(i + 1) % 3]);
        struct edge drange = op_call2(g, "Sub", high[i], low[i]);
        struct edge dhue = quotient(g, dover, range, over, drange, six);
        struct edge dsaturation = quotient(g, drange, max, range, high[i], square);
        sums[i] = op_call2(g, "AddV2", op_call2(g, "Mul", dy[0], dhue),
                           op_call2(g, "AddV2", op_call2(g, "Mul", dy[1], dsaturation),
                                    op_call2(g, "Mul", dy[2], high[i])));
    }
    return op_gradient_single(g, op_call(g, "Pack", INPUTS(sums[0], sums[1], sums[2]),
                                         ATTRS(attr_int("N", 3), attr_int("axis", -1))));
}

#define COLOR(name_, amount_)                                                                  \
    {                                                                                          \
        .name = name_, .inputs = "images:T " amount_ ":float", .outputs = "output:T",          \
        .attrs = "T:{half,float}=float", .infer = op_infer_unchanged,                          \
    }

const struct op op_adjust_contrastv2 = COLOR("AdjustContrastv2", "contrast_factor");
const struct op op_adjust_hue = COLOR("AdjustHue", "delta");
const struct op op_adjust_saturation = COLOR("AdjustSaturation", "scale");
const struct op op_rgb_to_hsv = {
    .name = "RGBToHSV",
    .inputs = "images:T",
    .outputs = "output:T",
    .attrs = "T:" OP_FLOAT "=float",
    .infer = op_infer_unchanged,
    .gradient = rgb_to_hsv_gradient,
};
const struct op op_hsv_to_rgb = {
    .name = "HSVToRGB",
    .inputs = "images:T",
    .outputs = "output:T",
    .attrs = "T:" OP_FLOAT "=float",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

/* (batch, height, width, channels) with the size in input 1, as far as known. */
static bool infer_glimpse(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t size[LIMIT_TENSOR_RANK] = {-1, -1}, batch = op_infer_dim(infer, 0, 0);
    int count = 2;
    if (op_infer_values(infer, 1, size, &count) && count != 2)
        return true;
    infer->outputs[0] =
        SHAPE(batch >= 0 ? batch : op_infer_dim(infer, 2, 0), size[0] < 0 ? -1 : size[0],
              size[1] < 0 ? -1 : size[1], op_infer_dim(infer, 0, 3));
    return true;
}

#define GLIMPSE(name_, no_gradient_)                                                           \
    {                                                                                          \
        .name = name_, .inputs = "input:float size:int32 offsets:float",                       \
        .outputs = "glimpse:float",                                                            \
        .attrs = "centered:bool=true normalized:bool=true uniform_noise:bool=true "            \
                 "noise:string='uniform'",                                                     \
        .infer = infer_glimpse, .no_gradient = no_gradient_                                    \
    }

const struct op op_extract_glimpse = GLIMPSE("ExtractGlimpse", true);
const struct op op_extract_glimpse_v2 = GLIMPSE("ExtractGlimpseV2", false);
