/* random.c - random numbers: from streams that a session carries on, and from seeds alone. */

#include "runtime/ops/internal.h"

#define STREAM(name_)                                                                          \
    {                                                                                          \
        .name = name_, .inputs = "shape:T", .outputs = "output:dtype",                         \
        .attrs = "seed:int=0 seed2:int=0 dtype:" OP_FLOAT " T:" OP_INDEX,                      \
        .flags = OP_STATEFUL, .infer = op_infer_from_first, .no_gradient = true,               \
    }
#define STATELESS(name_)                                                                       \
    {                                                                                          \
        .name = name_, .inputs = "shape:T seed:Tseed", .outputs = "output:dtype",              \
        .attrs = "dtype:{half,bfloat16,float,double}=float T:{int32,int64}=int32 "             \
                 "Tseed:{int32,int64}=int64",                                                  \
        .infer = op_infer_from_first, .no_gradient = true,                                     \
    }
#define STATELESS_V2(name_)                                                                    \
    {                                                                                          \
        .name = name_, .inputs = "shape:Tshape key:uint64 counter:uint64 alg:int32",           \
        .outputs = "output:dtype",                                                             \
        .attrs = "dtype:{half,bfloat16,float,double}=float Tshape:{int32,int64}=int32",        \
        .infer = op_infer_from_first, .no_gradient = true,                                     \
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
    .infer = op_infer_from_first,
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
    .infer = op_infer_from_first,
    .no_gradient = true,
};

const struct op op_stateless_random_uniform_int_v2 = {
    .name = "StatelessRandomUniformIntV2",
    .inputs = "shape:Tshape key:uint64 counter:uint64 alg:int32 minval:dtype maxval:dtype",
    .outputs = "output:dtype",
    .attrs = "dtype:{int32,int64,uint32,uint64} Tshape:{int32,int64}=int32",
    .infer = op_infer_from_first,
    .no_gradient = true,
};

const struct op op_stateless_random_uniform_full_int = {
    .name = "StatelessRandomUniformFullInt",
    .inputs = "shape:T seed:Tseed",
    .outputs = "output:dtype",
    .attrs = "dtype:{int32,int64,uint32,uint64}=uint64 T:{int32,int64}=int32 "
             "Tseed:{int32,int64,uint32,uint64}=int64",
    .infer = op_infer_from_first,
    .no_gradient = true,
};

const struct op op_stateless_random_uniform_full_int_v2 = {
    .name = "StatelessRandomUniformFullIntV2",
    .inputs = "shape:Tshape key:uint64 counter:uint64 alg:int32",
    .outputs = "output:dtype",
    .attrs = "dtype:{int32,int64,uint32,uint64}=uint64 Tshape:{int32,int64}=int32",
    .infer = op_infer_from_first,
    .no_gradient = true,
};

/* --- other distributions --- */

/* The shape in input 0, with that of input 1 behind it. */
static bool infer_with_parameters(struct infer *infer, struct error *err)
{
    (void)err;
    const struct shape *parameters = &infer->inputs[1];
    op_infer_from_vector(infer, 0);
    struct shape *out = &infer->outputs[0];
    if (out->rank < 0 || parameters->rank < 0 ||
        out->rank + parameters->rank > LIMIT_TENSOR_RANK) {
        *out = SHAPE_UNKNOWN;
        return true;
    }
    for (int d = 0; d < parameters->rank; d++)
        out->dims[out->rank++] = parameters->dims[d];
    return true;
}

/* Logits (batch, classes) and how many samples: (batch, samples). */
static bool infer_multinomial(struct infer *infer, struct error *err)
{
    (void)err;
    int64_t samples;
    if (!op_infer_value(infer, 1, &samples))
        samples = -1;
    infer->outputs[0] = SHAPE(op_infer_dim(infer, 0, 0), samples);
    return true;
}

/* alpha, with as many dimensions of 1 in front as the shape has elements, against samples. */
static bool random_gamma_gradient(struct gradient *g, struct error *err)
{
    (void)err;
    struct edge alpha = gradient_x(g, 1), sample = gradient_y(g, 0);
    struct edge axes = op_call1(g, "Size", gradient_x(g, 0));
    struct edge one = op_ints(g, (const int64_t[]){1}, 1);
    struct edge ones = op_call2(g, "Fill", op_call2(g, "Reshape", axes, one), op_int(g, 1));
    struct edge shape =
        op_call(g, "ConcatV2", INPUTS(ones, op_shape_of(g, alpha), op_int(g, 0)),
                ATTRS(attr_int("N", 2)));
    struct edge partial =
        op_call2(g, "RandomGammaGrad", op_call2(g, "Reshape", alpha, shape), sample);
    g->of_inputs[1] = op_call2(g, "Sum", op_call2(g, "Mul", g->of_outputs[0], partial),
                               op_call3(g, "Range", op_int(g, 0), axes, op_int(g, 1)));
    return builder_ok(&g->build);
}

const struct op op_random_gamma = {
    .name = "RandomGamma",
    .inputs = "shape:S alpha:T",
    .outputs = "output:T",
    .attrs = "seed:int=0 seed2:int=0 S:" OP_INDEX " T:{half,float,double}",
    .flags = OP_STATEFUL,
    .infer = infer_with_parameters,
    .gradient = random_gamma_gradient,
};

const struct op op_random_gamma_grad = {
    .name = "RandomGammaGrad",
    .inputs = "alpha:T sample:T",
    .outputs = "output:T",
    .attrs = "T:{float,double}",
    .infer = op_infer_broadcast,
};

#define STATELESS_GAMMA(name_, keys_, attrs_)                                                  \
    {                                                                                          \
        .name = name_, .inputs = "shape:" keys_ " alpha:dtype", .outputs = "output:dtype",     \
        .attrs = "dtype:{half,float,double} " attrs_, .infer = op_infer_from_first,            \
        .no_gradient = true,                                                                   \
    }

const struct op op_stateless_random_gamma_v2 = STATELESS_GAMMA(
    "StatelessRandomGammaV2", "T seed:Tseed", "T:{int32,int64} Tseed:{int32,int64}=int64");
const struct op op_stateless_random_gamma_v3 =
    STATELESS_GAMMA("StatelessRandomGammaV3", "shape_dtype key:uint64 counter:uint64 alg:int32",
                    "shape_dtype:{int32,int64}=int32");

#define OP_COUNT "{half,float,double,int32,int64}"

const struct op op_random_poisson = {
    .name = "RandomPoisson",
    .inputs = "shape:S rate:dtype",
    .outputs = "output:dtype",
    .attrs = "seed:int=0 seed2:int=0 S:" OP_INDEX " dtype:{half,float,double}",
    .flags = OP_STATEFUL,
    .infer = infer_with_parameters,
    .no_gradient = true,
};

const struct op op_random_poisson_v2 = {
    .name = "RandomPoissonV2",
    .inputs = "shape:S rate:R",
    .outputs = "output:dtype",
    .attrs =
        "seed:int=0 seed2:int=0 S:" OP_INDEX " R:" OP_COUNT "=double dtype:" OP_COUNT "=int64",
    .flags = OP_STATEFUL,
    .infer = infer_with_parameters,
    .no_gradient = true,
};

const struct op op_stateless_random_poisson = {
    .name = "StatelessRandomPoisson",
    .inputs = "shape:T seed:Tseed lam:Rtype",
    .outputs = "output:dtype",
    .attrs = "Rtype:" OP_COUNT " dtype:" OP_COUNT " T:" OP_INDEX " Tseed:{int32,int64}=int64",
    .infer = op_infer_from_first,
    .no_gradient = true,
};

const struct op op_stateless_random_binomial = {
    .name = "StatelessRandomBinomial",
    .inputs = "shape:S seed:Tseed counts:T probs:T",
    .outputs = "output:dtype",
    .attrs = "S:" OP_INDEX " Tseed:{int32,int64}=int64 T:" OP_COUNT "=double dtype:" OP_COUNT
             "=int64",
    .infer = op_infer_from_first,
    .no_gradient = true,
};

const struct op op_multinomial = {
    .name = "Multinomial",
    .inputs = "logits:T num_samples:int32",
    .outputs = "output:output_dtype",
    .attrs = "seed:int=0 seed2:int=0 T:" OP_REAL " output_dtype:{int32,int64}=int64",
    .flags = OP_STATEFUL,
    .infer = infer_multinomial,
    .no_gradient = true,
};

const struct op op_stateless_multinomial = {
    .name = "StatelessMultinomial",
    .inputs = "logits:T num_samples:int32 seed:Tseed",
    .outputs = "output:output_dtype",
    .attrs = "T:" OP_REAL " Tseed:{int32,int64}=int64 output_dtype:{int32,int64}=int64",
    .infer = infer_multinomial,
    .no_gradient = true,
};

const struct op op_parameterized_truncated_normal = {
    .name = "ParameterizedTruncatedNormal",
    .inputs = "shape:T means:dtype stdevs:dtype minvals:dtype maxvals:dtype",
    .outputs = "output:dtype",
    .attrs = "seed:int=0 seed2:int=0 dtype:" OP_FLOAT " T:" OP_INDEX,
    .flags = OP_STATEFUL,
    .infer = op_infer_from_first,
    .no_gradient = true,
};

static bool infer_crop(struct infer *infer, struct error *err)
{
    (void)err;
    op_infer_from_vector(infer, 1);
    struct shape *out = &infer->outputs[0];
    if (out->rank != 2)
        op_infer_rank(infer, 0, 2);
    out->dims[out->rank++] = op_infer_dim(infer, 0, 2);
    return true;
}

const struct op op_random_crop = {
    .name = "RandomCrop",
    .inputs = "image:T size:int64",
    .outputs = "output:T",
    .attrs = "T:{uint8,int8,int16,int32,int64,float,double} seed:int=0 seed2:int=0",
    .flags = OP_STATEFUL,
    .infer = infer_crop,
    .no_gradient = true,
};

/* --- generators whose state is a variable --- */

static bool infer_from_third(struct infer *infer, struct error *err)
{
    (void)err;
    return op_infer_from_vector(infer, 2);
}

#define STATEFUL(name_, more_, attrs_)                                                         \
    {                                                                                          \
        .name = name_, .inputs = "resource:resource algorithm:int64 shape:shape_dtype" more_,  \
        .outputs = "output:dtype", .attrs = attrs_ " shape_dtype:type=int64",                  \
        .flags = OP_STATEFUL, .infer = infer_from_third, .no_gradient = true,                  \
    }

const struct op op_stateful_uniform = STATEFUL("StatefulUniform", "", "dtype:type=float");
const struct op op_stateful_standard_normal_v2 =
    STATEFUL("StatefulStandardNormalV2", "", "dtype:type=float");
const struct op op_stateful_truncated_normal =
    STATEFUL("StatefulTruncatedNormal", "", "dtype:type=float");
const struct op op_stateful_uniform_int =
    STATEFUL("StatefulUniformInt", " minval:dtype maxval:dtype", "dtype:type=int64");
const struct op op_stateful_uniform_full_int =
    STATEFUL("StatefulUniformFullInt", "", "dtype:type=uint64");

const struct op op_stateful_random_binomial = {
    .name = "StatefulRandomBinomial",
    .inputs = "resource:resource algorithm:int64 shape:S counts:T probs:T",
    .outputs = "output:dtype",
    .attrs = "S:" OP_INDEX " T:" OP_COUNT "=double dtype:" OP_COUNT "=int64",
    .flags = OP_STATEFUL,
    .infer = infer_from_third,
    .no_gradient = true,
};

const struct op op_rng_skip = {
    .name = "RngSkip",
    .inputs = "resource:resource algorithm:int64 delta:int64",
    .outputs = "",
    .attrs = "",
    .flags = OP_STATEFUL,
    .no_gradient = true,
};

static bool infer_state(struct infer *infer, struct error *err)
{
    (void)err;
    infer->outputs[0] = SHAPE(3);
    return true;
}

const struct op op_rng_read_and_skip = {
    .name = "RngReadAndSkip",
    .inputs = "resource:resource alg:int32 delta:uint64",
    .outputs = "value:int64",
    .attrs = "",
    .flags = OP_STATEFUL,
    .infer = infer_state,
    .no_gradient = true,
};

const struct op op_non_deterministic_ints = {
    .name = "NonDeterministicInts",
    .inputs = "shape:shape_dtype",
    .outputs = "output:dtype",
    .attrs = "dtype:type=int64 shape_dtype:type=int64",
    .flags = OP_STATEFUL,
    .infer = op_infer_from_first,
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
