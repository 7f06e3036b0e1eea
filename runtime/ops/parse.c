/*
 * parse.c - strings taken apart: tf.Examples, raw bytes, CSV, serialized tensors.
 */

#include "runtime/ops/internal.h"

static int list_count(const struct node *node, const char *name)
{
    const struct attr *attr = node_attr(node, name);
    return attr ? attr->count : 0;
}

/* `lead` dimensions in front of `shape`. */
static struct shape behind(const struct shape *lead, const struct shape *shape)
{
    if (lead->rank < 0 || shape->rank < 0 || lead->rank + shape->rank > LIMIT_TENSOR_RANK)
        return SHAPE_UNKNOWN;
    struct shape all = *lead;
    memcpy(all.dims + lead->rank, shape->dims, (size_t)shape->rank * sizeof(int64_t));
    all.rank += shape->rank;
    return all;
}

/* Whether the lists are as long as those beside them: the outputs hang on all of them. */
static bool check_lists(const struct node *node, int sparse, struct error *err)
{
    const struct {
        const char *a, *b;
        int counts[2];
    } pairs[] = {
        {"num_sparse", "sparse_types", {sparse, list_count(node, "sparse_types")}},
        {"Tdense",
         "dense_shapes",
         {list_count(node, "Tdense"), list_count(node, "dense_shapes")}},
        {"ragged_value_types",
         "ragged_split_types",
         {list_count(node, "ragged_value_types"), list_count(node, "ragged_split_types")}},
    };
    for (int i = 0; i < ARRAY_LEN(pairs); i++)
        if (pairs[i].counts[0] != pairs[i].counts[1])
            return fail(err, INVALID, "len(%s) != len(%s): %d, %d", pairs[i].a, pairs[i].b,
                        pairs[i].counts[0], pairs[i].counts[1]);
    return true;
}

/* The outputs that all forms begin with; `batch` is the shape of the serialized strings. */
static void infer_features(struct infer *infer, const struct shape *batch, int sparse)
{
    const struct attr *shapes = node_attr(infer->node, "dense_shapes");
    for (int i = 0; i < sparse && batch->rank >= 0; i++) {
        infer->outputs[i] = SHAPE(-1, batch->rank + 1);
        infer->outputs[sparse + i] = SHAPE(-1);
        infer->outputs[2 * sparse + i] = SHAPE(batch->rank + 1);
    }
    for (int i = 0; shapes && i < shapes->count; i++)
        infer->outputs[3 * sparse + i] = behind(batch, &shapes->shapes[i]);
}

static bool infer_example(struct infer *infer, struct error *err)
{
    int sparse = (int)node_attr_int(infer->node, "Nsparse", 0);
    if (!check_lists(infer->node, sparse, err))
        return false;
    infer_features(infer, &SHAPE(op_infer_dim(infer, 0, 0)), sparse);
    return true;
}

static bool infer_example_v2(struct infer *infer, struct error *err)
{
    const struct node *node = infer->node;
    int sparse = (int)node_attr_int(node, "num_sparse", 0);
    if (!check_lists(node, sparse, err))
        return false;
    int first = 3 * sparse + list_count(node, "Tdense");
    int ragged = list_count(node, "ragged_value_types");
    infer_features(infer, &infer->inputs[0], sparse);
    for (int i = 0; i < ragged; i++) {
        infer->outputs[first + i] = SHAPE(-1);
        infer->outputs[first + ragged + i] = SHAPE(-1);
    }
    return true;
}

static bool infer_single(struct infer *infer, struct error *err)
{
    int sparse = (int)node_attr_int(infer->node, "num_sparse", 0);
    if (!check_lists(infer->node, sparse, err))
        return false;
    infer_features(infer, &SHAPE_SCALAR, sparse);
    return true;
}

static bool infer_raw(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = behind(&infer->inputs[0], &SHAPE(-1));
    return true;
}

static bool infer_csv(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i < infer->node->outputs_count; i++)
        infer->outputs[i] = infer->inputs[0];
    return true;
}

const struct op op_parse_example = {
    .name = "ParseExample",
    .inputs = "serialized:string names:string sparse_keys:Nsparse*string "
              "dense_keys:Ndense*string dense_defaults:list(Tdense)",
    .outputs = "sparse_indices:Nsparse*int64 sparse_values:list(sparse_types) "
               "sparse_shapes:Nsparse*int64 dense_values:list(Tdense)",
    .attrs = "Nsparse:int>=0 Ndense:int>=0 "
             "sparse_types:list({float,int64,string})>=0 "
             "Tdense:list({float,int64,string})>=0 dense_shapes:list(shape)>=0",
    .infer = infer_example,
    .no_gradient = true,
};

const struct op op_parse_example_v2 = {
    .name = "ParseExampleV2",
    .inputs = "serialized:string names:string sparse_keys:string dense_keys:string "
              "ragged_keys:string dense_defaults:list(Tdense)",
    .outputs = "sparse_indices:num_sparse*int64 sparse_values:list(sparse_types) "
               "sparse_shapes:num_sparse*int64 dense_values:list(Tdense) "
               "ragged_values:list(ragged_value_types) "
               "ragged_row_splits:list(ragged_split_types)",
    .attrs = "Tdense:list({float,int64,string})>=0 num_sparse:int>=0 "
             "sparse_types:list({float,int64,string})>=0 "
             "ragged_value_types:list({float,int64,string})>=0 "
             "ragged_split_types:list({int32,int64})>=0 dense_shapes:list(shape)>=0",
    .infer = infer_example_v2,
    .no_gradient = true,
};

const struct op op_parse_single_example = {
    .name = "ParseSingleExample",
    .inputs = "serialized:string dense_defaults:list(Tdense)",
    .outputs = "sparse_indices:num_sparse*int64 sparse_values:list(sparse_types) "
               "sparse_shapes:num_sparse*int64 dense_values:list(Tdense)",
    .attrs = "num_sparse:int>=0 sparse_keys:list(string)>=0 "
             "dense_keys:list(string)>=0 sparse_types:list({float,int64,string})>=0 "
             "Tdense:list({float,int64,string})>=0 dense_shapes:list(shape)>=0",
    .infer = infer_single,
    .no_gradient = true,
};

const struct op op_parse_sequence_example = {
    .name = "ParseSequenceExample",
    .inputs = "serialized:string debug_name:string "
              "context_dense_defaults:list(Tcontext_dense)",
    .outputs = "context_sparse_indices:Ncontext_sparse*int64 "
               "context_sparse_values:list(context_sparse_types) "
               "context_sparse_shapes:Ncontext_sparse*int64 "
               "context_dense_values:list(Tcontext_dense) "
               "feature_list_sparse_indices:Nfeature_list_sparse*int64 "
               "feature_list_sparse_values:list(feature_list_sparse_types) "
               "feature_list_sparse_shapes:Nfeature_list_sparse*int64 "
               "feature_list_dense_values:list(feature_list_dense_types) "
               "feature_list_dense_lengths:Nfeature_list_dense*int64",
    .attrs = "feature_list_dense_missing_assumed_empty:list(string)>=0 "
             "context_sparse_keys:list(string)>=0 context_dense_keys:list(string)>=0 "
             "feature_list_sparse_keys:list(string)>=0 "
             "feature_list_dense_keys:list(string)>=0 Ncontext_sparse:int>=0=0 "
             "Ncontext_dense:int>=0=0 Nfeature_list_sparse:int>=0=0 "
             "Nfeature_list_dense:int>=0=0 "
             "context_sparse_types:list({float,int64,string})>=0=[] "
             "Tcontext_dense:list({float,int64,string})>=0=[] "
             "feature_list_dense_types:list({float,int64,string})>=0=[] "
             "context_dense_shapes:list(shape)>=0=[] "
             "feature_list_sparse_types:list({float,int64,string})>=0=[] "
             "feature_list_dense_shapes:list(shape)>=0=[]",
    .no_gradient = true,
};

const struct op op_parse_sequence_example_v2 = {
    .name = "ParseSequenceExampleV2",
    .inputs = "serialized:string debug_name:string context_sparse_keys:string "
              "context_dense_keys:string context_ragged_keys:string "
              "feature_list_sparse_keys:string feature_list_dense_keys:string "
              "feature_list_ragged_keys:string "
              "feature_list_dense_missing_assumed_empty:bool "
              "context_dense_defaults:list(Tcontext_dense)",
    .outputs = "context_sparse_indices:Ncontext_sparse*int64 "
               "context_sparse_values:list(context_sparse_types) "
               "context_sparse_shapes:Ncontext_sparse*int64 "
               "context_dense_values:list(Tcontext_dense) "
               "context_ragged_values:list(context_ragged_value_types) "
               "context_ragged_row_splits:list(context_ragged_split_types) "
               "feature_list_sparse_indices:Nfeature_list_sparse*int64 "
               "feature_list_sparse_values:list(feature_list_sparse_types) "
               "feature_list_sparse_shapes:Nfeature_list_sparse*int64 "
               "feature_list_dense_values:list(feature_list_dense_types) "
               "feature_list_dense_lengths:Nfeature_list_dense*int64 "
               "feature_list_ragged_values:list(feature_list_ragged_value_types) "
               "feature_list_ragged_outer_splits:list(feature_list_ragged_split_types) "
               "feature_list_ragged_inner_splits:list(feature_list_ragged_split_types)",
    .attrs = "Ncontext_sparse:int>=0=0 "
             "Tcontext_dense:list({float,int64,string})>=0=[] "
             "context_sparse_types:list({float,int64,string})>=0=[] "
             "context_ragged_value_types:list({float,int64,string})>=0=[] "
             "context_ragged_split_types:list({int32,int64})>=0=[] "
             "context_dense_shapes:list(shape)>=0=[] Nfeature_list_sparse:int>=0=0 "
             "Nfeature_list_dense:int>=0=0 "
             "feature_list_dense_types:list({float,int64,string})>=0=[] "
             "feature_list_sparse_types:list({float,int64,string})>=0=[] "
             "feature_list_ragged_value_types:list({float,int64,string})>=0=[] "
             "feature_list_ragged_split_types:list({int32,int64})>=0=[] "
             "feature_list_dense_shapes:list(shape)>=0=[]",
    .no_gradient = true,
};

const struct op op_parse_single_sequence_example = {
    .name = "ParseSingleSequenceExample",
    .inputs = "serialized:string feature_list_dense_missing_assumed_empty:string "
              "context_sparse_keys:Ncontext_sparse*string "
              "context_dense_keys:Ncontext_dense*string "
              "feature_list_sparse_keys:Nfeature_list_sparse*string "
              "feature_list_dense_keys:Nfeature_list_dense*string "
              "context_dense_defaults:list(Tcontext_dense) debug_name:string",
    .outputs = "context_sparse_indices:Ncontext_sparse*int64 "
               "context_sparse_values:list(context_sparse_types) "
               "context_sparse_shapes:Ncontext_sparse*int64 "
               "context_dense_values:list(Tcontext_dense) "
               "feature_list_sparse_indices:Nfeature_list_sparse*int64 "
               "feature_list_sparse_values:list(feature_list_sparse_types) "
               "feature_list_sparse_shapes:Nfeature_list_sparse*int64 "
               "feature_list_dense_values:list(feature_list_dense_types)",
    .attrs = "Ncontext_sparse:int>=0=0 Ncontext_dense:int>=0=0 "
             "Nfeature_list_sparse:int>=0=0 Nfeature_list_dense:int>=0=0 "
             "context_sparse_types:list({float,int64,string})>=0=[] "
             "Tcontext_dense:list({float,int64,string})>=0=[] "
             "feature_list_dense_types:list({float,int64,string})>=0=[] "
             "context_dense_shapes:list(shape)>=0=[] "
             "feature_list_sparse_types:list({float,int64,string})>=0=[] "
             "feature_list_dense_shapes:list(shape)>=0=[]",
    .no_gradient = true,
};

const struct op op_decode_raw = {
    .name = "DecodeRaw",
    .inputs = "bytes:string",
    .outputs = "output:out_type",
    .attrs = "out_type:{half,float,double,int32,uint16,uint8,int16,int8,int64,complex64,"
             "complex128,bool,bfloat16} little_endian:bool=true",
    .infer = infer_raw,
    .no_gradient = true,
};

const struct op op_decode_padded_raw = {
    .name = "DecodePaddedRaw",
    .inputs = "input_bytes:string fixed_length:int32",
    .outputs = "output:out_type",
    .attrs = "out_type:{half,float,double,int32,uint16,uint8,int16,int8,int64,bfloat16} "
             "little_endian:bool=true",
    .infer = infer_raw,
    .no_gradient = true,
};

const struct op op_decode_csv = {
    .name = "DecodeCSV",
    .inputs = "records:string record_defaults:list(OUT_TYPE)",
    .outputs = "output:list(OUT_TYPE)",
    .attrs = "OUT_TYPE:list({float,double,int32,int64,string})>=1 "
             "field_delim:string=',' use_quote_delim:bool=true na_value:string='' "
             "select_cols:list(int)=[]",
    .infer = infer_csv,
    .no_gradient = true,
};

const struct op op_parse_tensor = {
    .name = "ParseTensor",
    .inputs = "serialized:string",
    .outputs = "output:out_type",
    .attrs = "out_type:type",
    .no_gradient = true,
};

const struct op op_serialize_tensor = {
    .name = "SerializeTensor",
    .inputs = "tensor:T",
    .outputs = "serialized:string",
    .attrs = "T:type",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_decode_compressed = {
    .name = "DecodeCompressed",
    .inputs = "bytes:string",
    .outputs = "output:string",
    .attrs = "compression_type:string=''",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

const struct op op_decode_json_example = {
    .name = "DecodeJSONExample",
    .inputs = "json_examples:string",
    .outputs = "binary_examples:string",
    .attrs = "",
    .infer = op_infer_unchanged,
    .no_gradient = true,
};
