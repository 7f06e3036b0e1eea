/* reader.c - readers of files.  The forms without V2 have handles that are names. */

#include "runtime/ops/internal.h"

#define READER_OP(constant, name_, inputs_, outputs_, attrs_, infer_)                          \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = inputs_,                                                                     \
        .outputs = outputs_,                                                                   \
        .attrs = attrs_,                                                                       \
        .flags = OP_STATEFUL,                                                                  \
        .infer = infer_,                                                                       \
        .no_gradient = true,                                                                   \
    }
#define NAMES " container:string='' shared_name:string=''"
#define MAKER(constant, name_, attrs_, attrs_v2_)                                              \
    READER_OP(constant, name_, "", "reader_handle:Ref(string)", attrs_ NAMES, NULL);           \
    READER_OP(constant##_v2, name_ "V2", "", "reader_handle:resource", attrs_ attrs_v2_ NAMES, \
              op_infer_scalar)
/* `more_` and `more_v2_`: inputs behind the reader's handle. */
#define USER(constant, name_, more_, more_v2_, outputs_, infer_)                               \
    READER_OP(constant, name_, "reader_handle:Ref(string)" more_, outputs_, "", infer_);       \
    READER_OP(constant##_v2, name_ "V2", "reader_handle:resource" more_v2_, outputs_, "",      \
              infer_)

#define BY_REF " queue_handle:Ref(string)"
#define BY_RESOURCE " queue_handle:resource"

MAKER(text_line_reader, "TextLineReader", "skip_header_lines:int=0", "");
MAKER(fixed_length_record_reader, "FixedLengthRecordReader",
      "header_bytes:int=0 record_bytes:int footer_bytes:int=0 hop_bytes:int=0",
      " encoding:string=''");
MAKER(tf_record_reader, "TFRecordReader", "compression_type:string=''", "");
MAKER(whole_file_reader, "WholeFileReader", "", "");
MAKER(identity_reader, "IdentityReader", "", "");

USER(reader_read, "ReaderRead", BY_REF, BY_RESOURCE, "key:string value:string",
     op_infer_scalar);
USER(reader_read_up_to, "ReaderReadUpTo", BY_REF " num_records:int64",
     BY_RESOURCE " num_records:int64", "keys:string values:string", NULL);
USER(reader_reset, "ReaderReset", "", "", "", NULL);
USER(reader_serialize_state, "ReaderSerializeState", "", "", "state:string", op_infer_scalar);
USER(reader_restore_state, "ReaderRestoreState", " state:string", " state:string", "", NULL);
USER(reader_num_records_produced, "ReaderNumRecordsProduced", "", "", "records_produced:int64",
     op_infer_scalar);
USER(reader_num_work_units_completed, "ReaderNumWorkUnitsCompleted", "", "",
     "units_completed:int64", op_infer_scalar);
