/* boxes.c - boxes in images. */

#include "runtime/ops/internal.h"

static bool infer_sample(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = infer->outputs[1] = SHAPE(3);
    infer->outputs[2] = SHAPE(1, 1, 4);
    return true;
}

#define SAMPLE_ATTRS                                                                           \
    "T:{uint8,int8,int16,int32,int64} seed:int=0 seed2:int=0 "                                 \
    "aspect_ratio_range:list(float)=[0.75,1.33] area_range:list(float)=[0.05,1] "              \
    "max_attempts:int=100 use_image_if_no_bounding_boxes:bool=false"

const struct op op_sample_distorted_bounding_box = {
    .name = "SampleDistortedBoundingBox",
    .inputs = "image_size:T bounding_boxes:float",
    .outputs = "begin:T size:T bboxes:float",
    .attrs = SAMPLE_ATTRS " min_object_covered:float=0.1",
    .flags = OP_STATEFUL,
    .infer = infer_sample,
    .no_gradient = true,
};

const struct op op_sample_distorted_bounding_box_v2 = {
    .name = "SampleDistortedBoundingBoxV2",
    .inputs = "image_size:T bounding_boxes:float min_object_covered:float",
    .outputs = "begin:T size:T bboxes:float",
    .attrs = SAMPLE_ATTRS,
    .flags = OP_STATEFUL,
    .infer = infer_sample,
    .no_gradient = true,
};

/* How many are found is not known; the last of several outputs says it. */
static bool infer_suppression(struct infer *infer, struct error *err)
{
    (void)err;
    int outputs = infer->node->outputs_count;
    for (int i = 0; i < outputs; i++)
        infer->outputs[i] = i > 0 && i == outputs - 1 ? SHAPE_SCALAR : SHAPE(-1);
    return true;
}

#define SUPPRESSION(name_, inputs_, outputs_, attrs_)                                          \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_,                \
        .infer = infer_suppression, .no_gradient = true,                                       \
    }
#define THRESHOLD "T:{half,float}=float T_threshold:{half,float}=float"
#define BOXES "boxes:T scores:T max_output_size:int32 iou_threshold:T_threshold"

const struct op op_non_max_suppression =
    SUPPRESSION("NonMaxSuppression", "boxes:float scores:float max_output_size:int32",
                "selected_indices:int32", "iou_threshold:float=0.5");
const struct op op_non_max_suppression_v2 =
    SUPPRESSION("NonMaxSuppressionV2", BOXES, "selected_indices:int32", THRESHOLD);
const struct op op_non_max_suppression_v3 =
    SUPPRESSION("NonMaxSuppressionV3", BOXES " score_threshold:T_threshold",
                "selected_indices:int32", THRESHOLD);
const struct op op_non_max_suppression_v4 =
    SUPPRESSION("NonMaxSuppressionV4", BOXES " score_threshold:T_threshold",
                "selected_indices:int32 valid_outputs:int32",
                THRESHOLD " pad_to_max_output_size:bool=false");
const struct op op_non_max_suppression_v5 = SUPPRESSION(
    "NonMaxSuppressionV5",
    "boxes:T scores:T max_output_size:int32 iou_threshold:T score_threshold:T soft_nms_sigma:T",
    "selected_indices:int32 selected_scores:T valid_outputs:int32",
    "T:{half,float}=float pad_to_max_output_size:bool=false");
