/* set.c - the last dimension as sets. */

#include "runtime/ops/internal.h"

static bool infer_set(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t rank = infer->inputs[0].rank;
    if (strncmp(infer->node->op->name, "Dense", 5) != 0)
        rank = op_infer_dim(infer, 0, 1);
    op_infer_rank(infer, 0, 2);
    infer->outputs[0].dims[1] = rank > 0 ? rank : -1;
    op_infer_rank(infer, 1, 1);
    infer->outputs[2] = SHAPE(rank > 0 ? rank : -1);
    return true;
}

/* One number for each set. */
static bool infer_size(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t rank = op_infer_dim(infer, 2, 0);
    if (rank > 0 && rank <= LIMIT_TENSOR_RANK)
        op_infer_rank(infer, 0, (int)rank - 1);
    return true;
}

const struct op op_dense_to_dense_set_operation = {
    .name = "DenseToDenseSetOperation",
    .inputs = "set1:T set2:T",
    .outputs = "result_indices:int64 result_values:T result_shape:int64",
    .attrs = "set_operation:string validate_indices:bool=true "
             "T:{int8,int16,int32,int64,uint8,uint16,string}",
    .infer = infer_set,
    .no_gradient = true,
};

const struct op op_dense_to_sparse_set_operation = {
    .name = "DenseToSparseSetOperation",
    .inputs = "set1:T set2_indices:int64 set2_values:T set2_shape:int64",
    .outputs = "result_indices:int64 result_values:T result_shape:int64",
    .attrs = "set_operation:string validate_indices:bool=true "
             "T:{int8,int16,int32,int64,uint8,uint16,string}",
    .infer = infer_set,
    .no_gradient = true,
};

const struct op op_sparse_to_sparse_set_operation = {
    .name = "SparseToSparseSetOperation",
    .inputs = "set1_indices:int64 set1_values:T set1_shape:int64 set2_indices:int64 "
              "set2_values:T set2_shape:int64",
    .outputs = "result_indices:int64 result_values:T result_shape:int64",
    .attrs = "set_operation:string validate_indices:bool=true "
             "T:{int8,int16,int32,int64,uint8,uint16,string}",
    .infer = infer_set,
    .no_gradient = true,
};

const struct op op_set_size = {
    .name = "SetSize",
    .inputs = "set_indices:int64 set_values:T set_shape:int64",
    .outputs = "size:int32",
    .attrs = "validate_indices:bool=true T:{int8,int16,int32,int64,uint8,uint16,string}",
    .infer = infer_size,
    .no_gradient = true,
};
