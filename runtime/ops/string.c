/* string.c - strings: made, taken apart, matched, hashed. */

#include "runtime/ops/internal.h"

#include "runtime/graph.h"

#define SAME_SHAPE(name_, inputs_, outputs_, attrs_)                                           \
    {                                                                                          \
        .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_,                \
        .infer = op_infer_unchanged, .no_gradient = true,                                      \
    }

/* --- numbers and hashes --- */

const struct op op_as_string = SAME_SHAPE(
    "AsString", "input:T", "output:string",
    "T:{float,double,int32,uint8,int16,int8,int64,bfloat16,uint16,half,uint32,uint64,complex64,"
    "complex128,bool,variant,string} precision:int=-1 scientific:bool=false "
    "shortest:bool=false width:int=-1 fill:string=''");
const struct op op_string_to_number =
    SAME_SHAPE("StringToNumber", "string_tensor:string", "output:out_type",
               "out_type:{float,double,int32,int64,uint32,uint64}=float");
const struct op op_string_to_hash_bucket = SAME_SHAPE(
    "StringToHashBucket", "string_tensor:string", "output:int64", "num_buckets:int>=1");
const struct op op_string_to_hash_bucket_fast =
    SAME_SHAPE("StringToHashBucketFast", "input:string", "output:int64", "num_buckets:int>=1");
const struct op op_string_to_hash_bucket_strong =
    SAME_SHAPE("StringToHashBucketStrong", "input:string", "output:int64",
               "num_buckets:int>=1 key:list(int)");

static bool infer_fingerprint(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(op_infer_dim(infer, 0, 0), -1);
    return true;
}

const struct op op_fingerprint = {
    .name = "Fingerprint",
    .inputs = "data:T method:string",
    .outputs = "fingerprint:uint8",
    .attrs = "T:type",
    .infer = infer_fingerprint,
    .no_gradient = true,
};

/* --- text --- */

const struct op op_string_strip =
    SAME_SHAPE("StringStrip", "input:string", "output:string", "");
const struct op op_string_lower =
    SAME_SHAPE("StringLower", "input:string", "output:string", "encoding:string=''");
const struct op op_string_upper =
    SAME_SHAPE("StringUpper", "input:string", "output:string", "encoding:string=''");
const struct op op_string_length = SAME_SHAPE("StringLength", "input:string", "output:int32",
                                              "unit:{'BYTE','UTF8_CHAR'}='BYTE'");
const struct op op_encode_base64 =
    SAME_SHAPE("EncodeBase64", "input:string", "output:string", "pad:bool=false");
const struct op op_decode_base64 =
    SAME_SHAPE("DecodeBase64", "input:string", "output:string", "");

static bool infer_substr(struct infer *infer, struct error *err)
{
    const struct shape *in = &infer->inputs[0], *pos = &infer->inputs[1];
    if (in->rank < 0 || pos->rank < 0)
        return true;
    return shape_broadcast(in, pos, &infer->outputs[0], err);
}

const struct op op_substr = {
    .name = "Substr",
    .inputs = "input:string pos:T len:T",
    .outputs = "output:string",
    .attrs = "T:{int32,int64} unit:{'BYTE','UTF8_CHAR'}='BYTE'",
    .infer = infer_substr,
    .no_gradient = true,
};

/* --- regular expressions --- */

const struct op op_regex_full_match =
    SAME_SHAPE("RegexFullMatch", "input:string pattern:string", "output:bool", "");
const struct op op_static_regex_full_match =
    SAME_SHAPE("StaticRegexFullMatch", "input:string", "output:bool", "pattern:string");
const struct op op_regex_replace =
    SAME_SHAPE("RegexReplace", "input:string pattern:string rewrite:string", "output:string",
               "replace_global:bool=true");
const struct op op_static_regex_replace =
    SAME_SHAPE("StaticRegexReplace", "input:string", "output:string",
               "pattern:string rewrite:string replace_global:bool=true");

/* --- split and joined --- */

static bool infer_split(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(-1, 2);
    infer->outputs[1] = SHAPE(-1);
    infer->outputs[2] = SHAPE(2);
    return true;
}

const struct op op_string_split = {
    .name = "StringSplit",
    .inputs = "input:string delimiter:string",
    .outputs = "indices:int64 values:string shape:int64",
    .attrs = "skip_empty:bool=true",
    .infer = infer_split,
    .no_gradient = true,
};

const struct op op_string_split_v2 = {
    .name = "StringSplitV2",
    .inputs = "input:string sep:string",
    .outputs = "indices:int64 values:string shape:int64",
    .attrs = "maxsplit:int=-1",
    .infer = infer_split,
    .no_gradient = true,
};

const struct op op_reduce_join = {
    .name = "ReduceJoin",
    .inputs = "inputs:string reduction_indices:int32",
    .outputs = "output:string",
    .attrs = "keep_dims:bool=false separator:string=''",
    .no_gradient = true,
};

const struct op op_unsorted_segment_join = {
    .name = "UnsortedSegmentJoin",
    .inputs = "inputs:string segment_ids:Tindices num_segments:Tnumsegments",
    .outputs = "output:string",
    .attrs = "separator:string='' Tindices:{int32,int64} Tnumsegments:{int32,int64}=int32",
    .no_gradient = true,
};

const struct op op_string_format = {
    .name = "StringFormat",
    .inputs = "inputs:list(T)",
    .outputs = "output:string",
    .attrs = "T:list(type) template:string='%s' placeholder:string='%s' summarize:int=3",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

static bool infer_ngrams(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_rank(infer, 0, 1);
    infer->outputs[1] = infer->inputs[1];
    return true;
}

const struct op op_string_n_grams = {
    .name = "StringNGrams",
    .inputs = "data:string data_splits:Tsplits",
    .outputs = "ngrams:string ngrams_splits:Tsplits",
    .attrs = "separator:string ngram_widths:list(int)>=0 left_pad:string right_pad:string "
             "pad_width:int preserve_short_sequences:bool Tsplits:{int32,int64}=int64",
    .infer = infer_ngrams,
    .no_gradient = true,
};

/* --- Unicode --- */

#define OP_ENCODING "{'UTF-8','UTF-16-BE','UTF-32-BE'}"
#define OP_ERRORS                                                                              \
    "errors:{'strict','replace','ignore'}='replace' replacement_char:int=65533 "               \
    "replace_control_characters:bool=false"

const struct op op_unicode_script =
    SAME_SHAPE("UnicodeScript", "input:int32", "output:int32", "");
const struct op op_unicode_transcode =
    SAME_SHAPE("UnicodeTranscode", "input:string", "output:string",
               "input_encoding:string output_encoding:" OP_ENCODING " " OP_ERRORS);

static bool infer_decode(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        op_infer_rank(infer, i, 1);
    return true;
}

const struct op op_unicode_decode = {
    .name = "UnicodeDecode",
    .inputs = "input:string",
    .outputs = "row_splits:Tsplits char_values:int32",
    .attrs = "input_encoding:string " OP_ERRORS " Tsplits:{int32,int64}=int64",
    .infer = infer_decode,
    .no_gradient = true,
};

const struct op op_unicode_decode_with_offsets = {
    .name = "UnicodeDecodeWithOffsets",
    .inputs = "input:string",
    .outputs = "row_splits:Tsplits char_values:int32 char_to_byte_starts:int64",
    .attrs = "input_encoding:string " OP_ERRORS " Tsplits:{int32,int64}=int64",
    .infer = infer_decode,
    .no_gradient = true,
};

static bool infer_encode(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t splits = op_infer_dim(infer, 1, 0);
    infer->outputs[0] = SHAPE(splits > 0 ? splits - 1 : -1);
    return true;
}

const struct op op_unicode_encode = {
    .name = "UnicodeEncode",
    .inputs = "input_values:int32 input_splits:Tsplits",
    .outputs = "output:string",
    .attrs = "errors:{'ignore','replace','strict'}='replace' output_encoding:" OP_ENCODING
             " replacement_char:int=65533 Tsplits:{int32,int64}=int64",
    .infer = infer_encode,
    .no_gradient = true,
};
