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
