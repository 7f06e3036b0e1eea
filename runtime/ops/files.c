/* files.c - checkpoints, and the strings that name them. */

#include "runtime/ops/internal.h"

const struct op op_save_v2 = {
    .name = "SaveV2",
    .inputs = "prefix:string tensor_names:string shape_and_slices:string tensors:list(dtypes)",
    .outputs = "",
    .attrs = "dtypes:list(type)>=1",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_restore_v2 = {
    .name = "RestoreV2",
    .inputs = "prefix:string tensor_names:string shape_and_slices:string",
    .outputs = "tensors:list(dtypes)",
    .attrs = "dtypes:list(type)>=1",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

/* --- checkpoints in the V1 format, of old graphs --- */

const struct op op_save = {
    .name = "Save",
    .inputs = "filename:string tensor_names:string data:list(T)",
    .outputs = "",
    .attrs = "T:list(type)>=1",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_save_slices = {
    .name = "SaveSlices",
    .inputs = "filename:string tensor_names:string shapes_and_slices:string data:list(T)",
    .outputs = "",
    .attrs = "T:list(type)>=1",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_restore = {
    .name = "Restore",
    .inputs = "file_pattern:string tensor_name:string",
    .outputs = "tensor:dt",
    .attrs = "dt:type preferred_shard:int=-1",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_restore_slice = {
    .name = "RestoreSlice",
    .inputs = "file_pattern:string tensor_name:string shape_and_slice:string",
    .outputs = "tensor:dt",
    .attrs = "dt:type preferred_shard:int=-1",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_merge_v2_checkpoints = {
    .name = "MergeV2Checkpoints",
    .inputs = "checkpoint_prefixes:string destination_prefix:string",
    .outputs = "",
    .attrs = "delete_old_dirs:bool=true allow_missing_files:bool=false",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_sharded_filename = {
    .name = "ShardedFilename",
    .inputs = "basename:string shard:int32 num_shards:int32",
    .outputs = "filename:string",
    .attrs = "",
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_string_join = {
    .name = "StringJoin",
    .inputs = "inputs:N*string",
    .outputs = "output:string",
    .attrs = "N:int>=0 separator:string=''",
    .no_gradient = true,
};

const struct op op_matching_files = {
    .name = "MatchingFiles",
    .inputs = "pattern:string",
    .outputs = "filenames:string",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

const struct op op_read_file = {
    .name = "ReadFile",
    .inputs = "filename:string",
    .outputs = "contents:string",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

const struct op op_write_file = {
    .name = "WriteFile",
    .inputs = "filename:string contents:string",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};
