/* dataset_sparse.c - sparse tensors as elements of datasets. */

#include "runtime/ops/internal.h"

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
