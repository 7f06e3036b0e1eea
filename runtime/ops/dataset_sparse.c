/* dataset_sparse.c - sparse and ragged tensors as elements of datasets, and features of
 * tf.Examples, which may be either. */

#include "runtime/ops/dataset.h"

const struct op op_serialize_sparse = {
    .name = "SerializeSparse",
    .inputs = "sparse_indices:int64 sparse_values:T sparse_shape:int64",
    .outputs = "serialized_sparse:out_type",
    .attrs = "T:type out_type:{string,variant}=string",
    .no_gradient = true,
};

const struct op op_serialize_many_sparse = {
    .name = "SerializeManySparse",
    .inputs = "sparse_indices:int64 sparse_values:T sparse_shape:int64",
    .outputs = "serialized_sparse:out_type",
    .attrs = "T:type out_type:{string,variant}=string",
    .no_gradient = true,
};

const struct op op_deserialize_sparse = {
    .name = "DeserializeSparse",
    .inputs = "serialized_sparse:Tserialized",
    .outputs = "sparse_indices:int64 sparse_values:dtype sparse_shape:int64",
    .attrs = "dtype:type Tserialized:{string,variant}=string",
    .no_gradient = true,
};

const struct op op_deserialize_many_sparse = {
    .name = "DeserializeManySparse",
    .inputs = "serialized_sparse:string",
    .outputs = "sparse_indices:int64 sparse_values:dtype sparse_shape:int64",
    .attrs = "dtype:type",
    .no_gradient = true,
};

const struct op op_add_sparse_to_tensors_map = {
    .name = "AddSparseToTensorsMap",
    .inputs = "sparse_indices:int64 sparse_values:T sparse_shape:int64",
    .outputs = "sparse_handle:int64",
    .attrs = "T:type container:string='' shared_name:string=''",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_add_many_sparse_to_tensors_map = {
    .name = "AddManySparseToTensorsMap",
    .inputs = "sparse_indices:int64 sparse_values:T sparse_shape:int64",
    .outputs = "sparse_handles:int64",
    .attrs = "T:type container:string='' shared_name:string=''",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_take_many_sparse_from_tensors_map = {
    .name = "TakeManySparseFromTensorsMap",
    .inputs = "sparse_handles:int64",
    .outputs = "sparse_indices:int64 sparse_values:dtype sparse_shape:int64",
    .attrs = "dtype:type container:string='' shared_name:string=''",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

static bool infer_to_variant(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_rank(infer, 0, node_attr_bool(infer->node, "batched_input", false) ? 1 : 0);
    return true;
}

const struct op op_ragged_tensor_to_variant = {
    .name = "RaggedTensorToVariant",
    .inputs = "rt_nested_splits:RAGGED_RANK*Tsplits rt_dense_values:Tvalues",
    .outputs = "encoded_ragged:variant",
    .attrs = "RAGGED_RANK:int>=0 Tvalues:type Tsplits:{int32,int64}=int64 batched_input:bool",
    .infer = infer_to_variant,
    .no_gradient = true,
};

static bool infer_from_variant(struct infer *infer, struct error *err)
{
    (void)err;
    for (int i = 0; i + 1 < infer->node->outputs_count; i++)
        op_infer_rank(infer, i, 1);
    return true;
}

const struct op op_ragged_tensor_from_variant = {
    .name = "RaggedTensorFromVariant",
    .inputs = "encoded_ragged:variant",
    .outputs = "output_nested_splits:output_ragged_rank*Tsplits output_dense_values:Tvalues",
    .attrs = "input_ragged_rank:int>=-1 output_ragged_rank:int>=0 Tvalues:type "
             "Tsplits:{int32,int64}=int64",
    .infer = infer_from_variant,
    .no_gradient = true,
};

#define PARSE_INPUTS                                                                           \
    "input_dataset:variant num_parallel_calls:int64 dense_defaults:list(Tdense)"
#define PARSE_KEYS                                                                             \
    "sparse_keys:list(string)>=0 dense_keys:list(string)>=0 "                                  \
    "sparse_types:list({float,int64,string})>=0 Tdense:list({float,int64,string})>=0 "         \
    "dense_shapes:list(shape)>=0 " OP_ELEMENTS
#define PARSE_RAGGED                                                                           \
    " ragged_keys:list(string)>=0=[] ragged_value_types:list({float,int64,string})>=0=[] "     \
    "ragged_split_types:list({int32,int64})>=0=[]"

const struct op op_parse_example_dataset = OP_DATASET(
    "ParseExampleDataset", PARSE_INPUTS, PARSE_KEYS " sloppy:bool=false" PARSE_RAGGED);

const struct op op_parse_example_dataset_v2 =
    OP_DATASET("ParseExampleDatasetV2", PARSE_INPUTS,
               PARSE_KEYS " deterministic:string='default'" PARSE_RAGGED);

const struct op op_experimental_parse_example_dataset = OP_DATASET(
    "ExperimentalParseExampleDataset", PARSE_INPUTS, PARSE_KEYS " sloppy:bool=false");
