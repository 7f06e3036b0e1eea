/* table.c - lookup tables.  The forms without V2 have a handle that is a reference to names. */

#include "runtime/ops/internal.h"

#include "runtime/graph.h"

/* What is found has the shape of the keys, where keys and values are scalars. */
static bool infer_find(struct infer *infer, struct error *err)
{
    (void)err;
    if (infer->inputs[2].rank == 0)
        infer->outputs[0] = infer->inputs[1];
    return true;
}

#define NAMES "container:string='' shared_name:string='' use_node_name_sharing:bool=false "
#define TYPES "key_dtype:type value_dtype:type"
#define DENSE                                                                                  \
    TYPES " value_shape:shape=[] initial_num_buckets:int=131072 max_load_factor:float=0.8"
#define BY_REF "Ref(string)"

#define TABLE_OP(constant, name_, inputs_, outputs_, attrs_, infer_)                           \
    const struct op op_##constant = {                                                          \
        .name = name_,                                                                         \
        .inputs = inputs_,                                                                     \
        .outputs = outputs_,                                                                   \
        .attrs = attrs_,                                                                       \
        .flags = OP_STATEFUL,                                                                  \
        .infer = infer_,                                                                       \
        .no_gradient = true,                                                                   \
    }

/* With a handle by names, and by resource. */
#define MAKER(constant, name_, inputs_, attrs_)                                                \
    TABLE_OP(constant, name_, inputs_, "table_handle:" BY_REF, NAMES attrs_, NULL);            \
    TABLE_OP(constant##_v2, name_ "V2", inputs_, "table_handle:resource", NAMES attrs_,        \
             op_infer_scalar)
#define USER(constant, name_, inputs_, outputs_, attrs_, infer_)                               \
    TABLE_OP(constant, name_, "table_handle:" BY_REF inputs_, outputs_, attrs_, infer_);       \
    TABLE_OP(constant##_v2, name_ "V2", "table_handle:resource" inputs_, outputs_, attrs_,     \
             infer_)
#define ANONYMOUS(constant, name_, inputs_, attrs_)                                            \
    TABLE_OP(constant, name_, inputs_, "table_handle:resource", attrs_, op_infer_scalar)

MAKER(hash_table, "HashTable", "", TYPES);
MAKER(mutable_hash_table, "MutableHashTable", "", TYPES);
MAKER(mutable_hash_table_of_tensors, "MutableHashTableOfTensors", "",
      TYPES " value_shape:shape=[]");
TABLE_OP(mutable_dense_hash_table, "MutableDenseHashTable", "empty_key:key_dtype",
         "table_handle:" BY_REF, NAMES DENSE, NULL);
TABLE_OP(mutable_dense_hash_table_v2, "MutableDenseHashTableV2",
         "empty_key:key_dtype deleted_key:key_dtype", "table_handle:resource", NAMES DENSE,
         op_infer_scalar);

ANONYMOUS(anonymous_hash_table, "AnonymousHashTable", "", TYPES);
ANONYMOUS(anonymous_mutable_hash_table, "AnonymousMutableHashTable", "", TYPES);
ANONYMOUS(anonymous_mutable_hash_table_of_tensors, "AnonymousMutableHashTableOfTensors", "",
          TYPES " value_shape:shape=[]");
ANONYMOUS(anonymous_mutable_dense_hash_table, "AnonymousMutableDenseHashTable",
          "empty_key:key_dtype deleted_key:key_dtype", DENSE);

USER(lookup_table_find, "LookupTableFind", " keys:Tin default_value:Tout", "values:Tout",
     "Tin:type Tout:type", infer_find);
USER(lookup_table_insert, "LookupTableInsert", " keys:Tin values:Tout", "",
     "Tin:type Tout:type", NULL);
USER(lookup_table_import, "LookupTableImport", " keys:Tin values:Tout", "",
     "Tin:type Tout:type", NULL);
TABLE_OP(lookup_table_remove_v2, "LookupTableRemoveV2", "table_handle:resource keys:Tin", "",
         "Tin:type", NULL);
USER(lookup_table_size, "LookupTableSize", "", "size:int64", "", op_infer_scalar);
USER(lookup_table_export, "LookupTableExport", "", "keys:Tkeys values:Tvalues",
     "Tkeys:type Tvalues:type", NULL);
USER(initialize_table, "InitializeTable", " keys:Tkey values:Tval", "", "Tkey:type Tval:type",
     NULL);
USER(initialize_table_from_text_file, "InitializeTableFromTextFile", " filename:string", "",
     "key_index:int>=-2 value_index:int>=-2 vocab_size:int>=-1=-1 delimiter:string='\t' "
     "offset:int=0",
     NULL);
