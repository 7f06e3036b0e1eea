/* summary_writer.c - event files that a graph writes. */

#include "runtime/ops/internal.h"

const struct op op_summary_writer = {
    .name = "SummaryWriter",
    .outputs = "writer:resource",
    .attrs = "shared_name:string='' container:string=''",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

#define WRITES(constant, name_, inputs_, attrs_)                                               \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = inputs_,                                                                     \
        .attrs = attrs_,                                                                       \
        .flags = OP_STATEFUL,                                                                  \
        .no_gradient = true,                                                                   \
    }

WRITES(create_summary_file_writer, "CreateSummaryFileWriter",
       "writer:resource logdir:string max_queue:int32 flush_millis:int32 "
       "filename_suffix:string",
       "");
WRITES(flush_summary_writer, "FlushSummaryWriter", "writer:resource", "");
WRITES(close_summary_writer, "CloseSummaryWriter", "writer:resource", "");
WRITES(write_summary, "WriteSummary",
       "writer:resource step:int64 tensor:T tag:string summary_metadata:string", "T:type");
WRITES(write_raw_proto_summary, "WriteRawProtoSummary",
       "writer:resource step:int64 tensor:string", "");
WRITES(write_scalar_summary, "WriteScalarSummary",
       "writer:resource step:int64 tag:string value:T", "T:" OP_REAL);
WRITES(write_histogram_summary, "WriteHistogramSummary",
       "writer:resource step:int64 tag:string values:T",
       "T:{float,double,int32,uint8,int16,int8,int64,bool,bfloat16,uint16,half,uint32,uint64}="
       "float");
WRITES(write_image_summary, "WriteImageSummary",
       "writer:resource step:int64 tag:string tensor:T bad_color:uint8",
       "max_images:int>=1=3 T:{uint8,double,float,half}=float");
WRITES(write_audio_summary, "WriteAudioSummary",
       "writer:resource step:int64 tag:string tensor:float sample_rate:float",
       "max_outputs:int>=1=3");
WRITES(write_graph_summary, "WriteGraphSummary", "writer:resource step:int64 tensor:string",
       "");
WRITES(import_event, "ImportEvent", "writer:resource event:string", "");
