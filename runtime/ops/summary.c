/* summary.c - summaries: serialized protobufs for event files. */

#include "runtime/ops/internal.h"

const struct op op_scalar_summary = {
    .name = "ScalarSummary",
    .inputs = "tags:string values:T",
    .outputs = "summary:string",
    .attrs = "T:" OP_REAL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_merge_summary = {
    .name = "MergeSummary",
    .inputs = "inputs:N*string",
    .outputs = "summary:string",
    .attrs = "N:int>=1",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_histogram_summary = {
    .name = "HistogramSummary",
    .inputs = "tag:string values:T",
    .outputs = "summary:string",
    .attrs = "T:{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64}"
             "=float",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_summary = {
    .name = "TensorSummary",
    .inputs = "tensor:T",
    .outputs = "summary:string",
    .attrs = "T:type description:string='' labels:list(string)=[] display_name:string=''",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_tensor_summary_v2 = {
    .name = "TensorSummaryV2",
    .inputs = "tag:string tensor:T serialized_summary_metadata:string",
    .outputs = "summary:string",
    .attrs = "T:type",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_image_summary = {
    .name = "ImageSummary",
    .inputs = "tag:string tensor:T",
    .outputs = "summary:string",
    .attrs = "max_images:int>=1=3 T:{uint8,float,half,double}=float "
             "bad_color:tensor=uint8[255,0,0,255]",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_audio_summary = {
    .name = "AudioSummary",
    .inputs = "tag:string tensor:float",
    .outputs = "summary:string",
    .attrs = "sample_rate:float max_outputs:int>=1=3",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_audio_summary_v2 = {
    .name = "AudioSummaryV2",
    .inputs = "tag:string tensor:float sample_rate:float",
    .outputs = "summary:string",
    .attrs = "max_outputs:int>=1=3",
    .infer = op_infer_scalar,
    .no_gradient = true,
};
