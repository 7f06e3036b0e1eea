/* build_initializer.c - how variables start: Keras's initialisers as stateless random ops. */

#include <math.h>

#include "base/arena.h"
#include "runtime/model/build.h"
#include "runtime/spec/spec.h"

int64_t build_seed(const struct build *m, const char *purpose)
{
    /* FNV-1a over the name, then the finaliser of splitmix64 over both. */
    uint64_t x = UINT64_C(0xcbf29ce484222325);
    for (const char *c = purpose; *c; c++)
        x = (x ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    x += ((uint64_t)m->seed + ((uint64_t)m->replica << 32)) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((x ^ (x >> 31)) >> 11); /* what a double keeps exact */
}

/* --- the classes --- */

static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
static const char *const distributions[] = {"uniform", "untruncated_normal", "truncated_normal",
                                            "normal", NULL};

#define SEED                                                                                   \
    {                                                                                          \
        CONFIG_ARG("seed", CONFIG_INT, "null")                                                 \
    }

static const struct config_argument seed_only[] = {SEED};
static const struct config_argument constant_arguments[] = {
    {CONFIG_ARG("value", CONFIG_REAL, "0"), CONFIG_RANGE(-1e30, 1e30)}};
static const struct config_argument uniform_arguments[] = {
    {CONFIG_ARG("minval", CONFIG_REAL, "-0.05"), CONFIG_RANGE(-1e30, 1e30)},
    {CONFIG_ARG("maxval", CONFIG_REAL, "0.05"), CONFIG_RANGE(-1e30, 1e30)},
    SEED};
static const struct config_argument normal_arguments[] = {
    {CONFIG_ARG("mean", CONFIG_REAL, "0"), CONFIG_RANGE(-1e30, 1e30)},
    {CONFIG_ARG("stddev", CONFIG_REAL, "0.05"), CONFIG_RANGE(0, 1e30)},
    SEED};
static const struct config_argument scaling_arguments[] = {
    {CONFIG_ARG("scale", CONFIG_REAL, "1"), CONFIG_RANGE(1e-30, 1e30)},
    {CONFIG_ARG("mode", CONFIG_CHOICE, "\"fan_in\""), .choices = modes},
    {CONFIG_ARG("distribution", CONFIG_CHOICE, "\"truncated_normal\""),
     .choices = distributions},
    SEED};
static const struct config_argument gain_arguments[] = {
    {CONFIG_ARG("gain", CONFIG_REAL, "1"), CONFIG_RANGE(-1e30, 1e30)}, SEED};
static const struct config_argument identity_arguments[] = {
    {CONFIG_ARG("gain", CONFIG_REAL, "1"), CONFIG_RANGE(-1e30, 1e30)}};

/* What the named ones say of VarianceScaling. */
static const struct scaled {
    const char *name;
    double scale;
    const char *mode, *distribution;
} scaled_rows[] = {
    {"GlorotUniform", 1, "fan_avg", "uniform"},
    {"GlorotNormal", 1, "fan_avg", "truncated_normal"},
    {"HeUniform", 2, "fan_in", "uniform"},
    {"HeNormal", 2, "fan_in", "truncated_normal"},
    {"LecunUniform", 1, "fan_in", "uniform"},
    {"LecunNormal", 1, "fan_in", "truncated_normal"},
};

static const struct config_class classes[] = {
    {.name = "Zeros"},
    {.name = "Ones"},
    {.name = "Constant", CONFIG_ARGUMENTS(constant_arguments)},
    {.name = "Identity",
     .aliases = (const char *const[]){"IdentityInitializer", NULL},
     CONFIG_ARGUMENTS(identity_arguments)},
    {.name = "Orthogonal",
     .aliases = (const char *const[]){"OrthogonalInitializer", NULL},
     CONFIG_ARGUMENTS(gain_arguments)},
    {.name = "RandomUniform",
     .aliases = (const char *const[]){"uniform", NULL},
     CONFIG_ARGUMENTS(uniform_arguments)},
    {.name = "RandomNormal",
     .aliases = (const char *const[]){"normal", NULL},
     CONFIG_ARGUMENTS(normal_arguments)},
    {.name = "TruncatedNormal", CONFIG_ARGUMENTS(normal_arguments)},
    {.name = "VarianceScaling", CONFIG_ARGUMENTS(scaling_arguments)},
    {.name = "GlorotUniform", CONFIG_ARGUMENTS(seed_only)},
    {.name = "GlorotNormal", CONFIG_ARGUMENTS(seed_only)},
    {.name = "HeUniform", CONFIG_ARGUMENTS(seed_only)},
    {.name = "HeNormal", CONFIG_ARGUMENTS(seed_only)},
    {.name = "LecunUniform", CONFIG_ARGUMENTS(seed_only)},
    {.name = "LecunNormal", CONFIG_ARGUMENTS(seed_only)},
};

static const struct config_class *class_at(int index)
{
    return index < ARRAY_LEN(classes) ? &classes[index] : NULL;
}

const struct config_family build_initializer_family = {
    .what = "initialiser", .key = "name", .at = class_at};

/* --- values --- */

/* Inputs and outputs of one unit, as Keras counts them. */
static double fan(const struct shape *shape, const char *mode)
{
    double in = 1, out = 1;
    if (shape->rank == 1) {
        in = out = (double)shape->dims[0];
    } else if (shape->rank >= 2) {
        double field = 1;
        for (int i = 0; i < shape->rank - 2; i++)
            field *= (double)shape->dims[i];
        in = field * (double)shape->dims[shape->rank - 2];
        out = field * (double)shape->dims[shape->rank - 1];
    }
    double wanted = !strcmp(mode, "fan_in")    ? in
                    : !strcmp(mode, "fan_out") ? out
                                               : (in + out) / 2;
    return wanted > 1 ? wanted : 1;
}

static struct edge dims_of(struct build *m, const struct shape *shape)
{
    return builder_ints(&m->b, "shape", I32, shape->dims, shape->rank);
}

static struct edge constant(struct build *m, const struct shape *shape, double value)
{
    struct edge dims = dims_of(m, shape);
    struct edge each = builder_scalar(&m->b, "value", F32, value);
    return builder_add(&m->b, "Fill", "Fill", INPUTS(dims, each), NO_ATTRS);
}

struct sample {
    const char *name; /* of the variable */
    const struct config *config;
    const struct shape *shape;
};

/* `op` gives standard numbers; they are then scaled and shifted. */
static struct edge random_values(struct build *m, const struct sample *sample, const char *op,
                                 const char *label, double scale, double shift)
{
    struct builder *b = &m->b;
    struct edge dims = dims_of(m, sample->shape);
    int64_t seeds[2] = {build_seed(m, sample->name), 0};
    if (config_has(sample->config, "seed") && !config_is_null(sample->config, "seed"))
        seeds[0] = config_int(sample->config, "seed"); /* as Keras seeds its own */
    struct edge seed = builder_ints(b, "seed", I64, seeds, 2);
    struct edge standard = builder_add(
        b, op, label, INPUTS(dims, seed),
        ATTRS(attr_type("dtype", F32), attr_type("T", I32), attr_type("Tseed", I64)));
    struct edge by = builder_scalar(b, "scale", F32, scale);
    struct edge scaled = builder_add(b, "Mul", "mul", INPUTS(standard, by), NO_ATTRS);
    if (shift == 0)
        return scaled;
    struct edge to = builder_scalar(b, "shift", F32, shift);
    return builder_add(b, "AddV2", "add", INPUTS(scaled, to), NO_ATTRS);
}

static struct edge uniform(struct build *m, const struct sample *sample, double from, double to)
{
    return random_values(m, sample, "StatelessRandomUniform", "random_uniform", to - from,
                         from);
}

static struct edge scaled(struct build *m, const struct sample *sample, double scale,
                          const char *mode, const char *distribution)
{
    double variance = scale / fan(sample->shape, mode);
    /* A normal cut at two deviations is narrower than asked for by this factor. */
    const double cut = 0.87962566103423978;
    if (!strcmp(distribution, "uniform"))
        return uniform(m, sample, -sqrt(3 * variance), sqrt(3 * variance));
    if (!strcmp(distribution, "untruncated_normal"))
        return random_values(m, sample, "StatelessRandomNormal", "random_normal",
                             sqrt(variance), 0);
    return random_values(m, sample, "StatelessTruncatedNormal", "truncated_normal",
                         sqrt(variance) / cut, 0);
}

/* Ones on the diagonal. */
static struct edge identity(struct build *m, const struct sample *sample)
{
    const struct shape *shape = sample->shape;
    if (shape->rank != 2) {
        build_refuse(m, INVALID, "the initialiser Identity is for matrices");
        return (struct edge){0};
    }
    struct edge zeros = constant(m, shape, 0);
    int64_t count = shape->dims[0] < shape->dims[1] ? shape->dims[0] : shape->dims[1];
    struct edge diagonal = constant(m, &SHAPE(count), config_real(sample->config, "gain"));
    return build_binary(m, "MatrixSetDiag", zeros, diagonal);
}

/*
 * A random matrix with orthonormal rows or columns: Q of the QR decomposition of normal
 * numbers, its columns turned by the signs of R's diagonal.
 */
static struct edge orthogonal(struct build *m, const struct sample *sample)
{
    const struct shape *shape = sample->shape;
    if (shape->rank < 2) {
        build_refuse(m, INVALID, "the initialiser Orthogonal needs at least two dimensions");
        return (struct edge){0};
    }
    int64_t columns = shape->dims[shape->rank - 1], rows = shape_count(shape) / columns;
    bool wide = rows < columns;
    struct shape tall = wide ? SHAPE(columns, rows) : SHAPE(rows, columns);
    struct sample matrix = {sample->name, sample->config, &tall};
    struct edge a = random_values(m, &matrix, "StatelessRandomNormal", "random_normal", 1, 0);
    struct edge q =
        builder_add(&m->b, "Qr", "Qr", INPUTS(a), ATTRS(attr_bool("full_matrices", false)));
    struct edge signs =
        build_unary(m, "Sign", build_unary(m, "MatrixDiagPart", builder_output(q, 1)));
    q = build_binary(m, "Mul", q, signs);
    if (wide)
        q = build_transpose(m, q, (const int64_t[]){1, 0}, 2);
    q = build_reshape(m, q, shape->dims, shape->rank);
    return build_with_number(m, "Mul", q, config_real(sample->config, "gain"));
}

static struct edge values(struct build *m, const struct sample *sample)
{
    const struct config *config = sample->config;
    for (int i = 0; i < ARRAY_LEN(scaled_rows); i++) {
        const struct scaled *row = &scaled_rows[i];
        if (config_is(config, row->name))
            return scaled(m, sample, row->scale, row->mode, row->distribution);
    }
    if (config_is(config, "VarianceScaling"))
        return scaled(m, sample, config_real(config, "scale"), config_choice(config, "mode"),
                      config_choice(config, "distribution"));
    if (config_is(config, "RandomUniform"))
        return uniform(m, sample, config_real(config, "minval"), config_real(config, "maxval"));
    if (config_is(config, "RandomNormal"))
        return random_values(m, sample, "StatelessRandomNormal", "random_normal",
                             config_real(config, "stddev"), config_real(config, "mean"));
    if (config_is(config, "TruncatedNormal"))
        return random_values(m, sample, "StatelessTruncatedNormal", "truncated_normal",
                             config_real(config, "stddev"), config_real(config, "mean"));
    if (config_is(config, "Orthogonal"))
        return orthogonal(m, sample);
    if (config_is(config, "Identity"))
        return identity(m, sample);
    double each = config_is(config, "Constant") ? config_real(config, "value")
                                                : config_is(config, "Ones");
    return constant(m, sample->shape, each);
}

struct edge build_initializer(struct build *m, const char *name,
                              const struct config *initializer, const struct shape *shape)
{
    const char *outside = m->b.scope;
    m->b.scope = arena_printf(m->arena, "%s/Initializer/", name);
    struct edge value = values(m, &(struct sample){name, initializer, shape});
    m->b.scope = outside;
    return value;
}
