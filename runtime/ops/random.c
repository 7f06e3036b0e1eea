/* random.c - random numbers: from streams that a session carries on, and from seeds alone. */

#include "runtime/ops/internal.h"

static bool infer_from_first(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 0);
}

#define STREAM(name_)                                                                          \
    {                                                                                          \
        .name = name_, .inputs = "shape:T", .outputs = "output:dtype",                         \
        .attrs = "seed:int=0 seed2:int=0 dtype:" OP_FLOAT " T:" OP_INDEX,                      \
        .flags = OP_STATEFUL, .infer = infer_from_first, .no_gradient = true,                  \
    }
#define STATELESS(name_)                                                                       \
    {                                                                                          \
        .name = name_, .inputs = "shape:T seed:Tseed", .outputs = "output:dtype",              \
        .attrs = "dtype:{half,bfloat16,float,double}=float T:{int32,int64}=int32 "             \
                 "Tseed:{int32,int64}=int64",                                                  \
        .infer = infer_from_first, .no_gradient = true,                                        \
    }
#define STATELESS_V2(name_)                                                                    \
    {                                                                                          \
        .name = name_, .inputs = "shape:Tshape key:uint64 counter:uint64 alg:int32",           \
        .outputs = "output:dtype",                                                             \
        .attrs = "dtype:{half,bfloat16,float,double}=float Tshape:{int32,int64}=int32",        \
        .infer = infer_from_first, .no_gradient = true,                                        \
    }

const struct op op_random_uniform = STREAM("RandomUniform");
const struct op op_random_standard_normal = STREAM("RandomStandardNormal");
const struct op op_truncated_normal = STREAM("TruncatedNormal");

const struct op op_random_uniform_int = {
    .name = "RandomUniformInt",
    .inputs = "shape:T minval:Tout maxval:Tout",
    .outputs = "output:Tout",
    .attrs = "seed:int=0 seed2:int=0 Tout:{int32,int64} T:" OP_INDEX,
    .flags = OP_STATEFUL,
    .infer = infer_from_first,
    .no_gradient = true,
};

const struct op op_random_shuffle = {
    .name = "RandomShuffle",
    .inputs = "value:T",
    .outputs = "output:T",
    .attrs = "seed:int=0 seed2:int=0 T:type",
    .flags = OP_STATEFUL,
    .infer = op_infer_unchanged,
    .no_gradient = true,
};

const struct op op_stateless_random_uniform = STATELESS("StatelessRandomUniform");
const struct op op_stateless_random_normal = STATELESS("StatelessRandomNormal");
const struct op op_stateless_truncated_normal = STATELESS("StatelessTruncatedNormal");
const struct op op_stateless_random_uniform_v2 = STATELESS_V2("StatelessRandomUniformV2");
const struct op op_stateless_random_normal_v2 = STATELESS_V2("StatelessRandomNormalV2");
const struct op op_stateless_truncated_normal_v2 = STATELESS_V2("StatelessTruncatedNormalV2");

const struct op op_stateless_random_uniform_int = {
    .name = "StatelessRandomUniformInt",
    .inputs = "shape:T seed:Tseed minval:dtype maxval:dtype",
    .outputs = "output:dtype",
    .attrs = "dtype:{int32,int64} T:{int32,int64} Tseed:{int32,int64}=int64",
    .infer = infer_from_first,
    .no_gradient = true,
};

const struct op op_stateless_random_uniform_int_v2 = {
    .name = "StatelessRandomUniformIntV2",
    .inputs = "shape:Tshape key:uint64 counter:uint64 alg:int32 minval:dtype maxval:dtype",
    .outputs = "output:dtype",
    .attrs = "dtype:{int32,int64,uint32,uint64} Tshape:{int32,int64}=int32",
    .infer = infer_from_first,
    .no_gradient = true,
};

const struct op op_stateless_random_uniform_full_int = {
    .name = "StatelessRandomUniformFullInt",
    .inputs = "shape:T seed:Tseed",
    .outputs = "output:dtype",
    .attrs = "dtype:{int32,int64,uint32,uint64}=uint64 T:{int32,int64}=int32 "
             "Tseed:{int32,int64,uint32,uint64}=int64",
    .infer = infer_from_first,
    .no_gradient = true,
};

const struct op op_stateless_random_uniform_full_int_v2 = {
    .name = "StatelessRandomUniformFullIntV2",
    .inputs = "shape:Tshape key:uint64 counter:uint64 alg:int32",
    .outputs = "output:dtype",
    .attrs = "dtype:{int32,int64,uint32,uint64}=uint64 Tshape:{int32,int64}=int32",
    .infer = infer_from_first,
    .no_gradient = true,
};

const struct op op_stateless_random_get_alg = {
    .name = "StatelessRandomGetAlg",
    .inputs = "",
    .outputs = "alg:int32",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = op_infer_scalar,
    .no_gradient = true,
};

static bool infer_key_counter(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(1);
    infer->outputs[1] = SHAPE(2);
    if (infer->node->outputs_count > 2)
        infer->outputs[2] = SHAPE_SCALAR;
    return true;
}

const struct op op_stateless_random_get_key_counter = {
    .name = "StatelessRandomGetKeyCounter",
    .inputs = "seed:Tseed",
    .outputs = "key:uint64 counter:uint64",
    .attrs = "Tseed:{int32,int64}=int64",
    .infer = infer_key_counter,
    .no_gradient = true,
};

const struct op op_stateless_random_get_key_counter_alg = {
    .name = "StatelessRandomGetKeyCounterAlg",
    .inputs = "seed:Tseed",
    .outputs = "key:uint64 counter:uint64 alg:int32",
    .attrs = "Tseed:{int32,int64}=int64",
    .infer = infer_key_counter,
    .no_gradient = true,
};
