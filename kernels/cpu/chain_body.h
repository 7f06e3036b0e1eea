/*
 * chain_body.h - elementwise programs, eight vectors at a time; see isa.h.
 *
 * The value that the steps pass on stays in registers: one jump per step and block, and memory
 * is read for operands alone.
 */

enum { CHAIN_VECTORS = 8 };

#define EACH_VECTOR _Pragma("GCC unroll 8") for (int j = 0; j < CHAIN_VECTORS; j++)

#define CHAIN_BINARY(name)                                                                     \
    case 4 * name:                                                                             \
        EACH_VECTOR r[j] = binary_of(name, r[j], load(p + j * LANES));                         \
        break;                                                                                 \
    case 4 * name + 1:                                                                         \
        EACH_VECTOR r[j] = binary_of(name, r[j], splat(*p));                                   \
        break;                                                                                 \
    case 4 * name + 2:                                                                         \
        EACH_VECTOR r[j] = binary_of(name, load(p + j * LANES), r[j]);                         \
        break;                                                                                 \
    case 4 * name + 3:                                                                         \
        EACH_VECTOR r[j] = binary_of(name, splat(*p), r[j]);                                   \
        break;

#define CHAIN_UNARY(name)                                                                      \
    case 4 * ISA_BINARIES + name:                                                              \
        EACH_VECTOR r[j] = unary_of(name, r[j]);                                               \
        break;

enum { CHAIN_LOAD = 4 * ISA_BINARIES + ISA_UNARIES, CHAIN_SPLAT };

/* One number for kind, operation and form of the operand. */
INLINE int chain_code(const struct isa_step *step)
{
    switch (step->kind) {
    case ISA_STEP_LOAD:
        return step->scalar ? CHAIN_SPLAT : CHAIN_LOAD;
    case ISA_STEP_UNARY:
        return 4 * ISA_BINARIES + step->operation;
    case ISA_STEP_BINARY:
        return 4 * step->operation + step->scalar;
    case ISA_STEP_REVERSED:
        break;
    }
    return 4 * step->operation + 2 + step->scalar;
}

/* A step made ready: what it does, and where its operand is for the block at hand. */
struct chain_step {
    int code;
    const float *p;
    int64_t advance;
    float *save;
};

enum { CHAIN_STEPS_MAX = 64 };

static void chain(const struct isa_step *steps, int steps_count, int64_t blocks, float *out)
{
    struct chain_step ready[CHAIN_STEPS_MAX];
    assert(steps_count <= CHAIN_STEPS_MAX);
    for (int s = 0; s < steps_count; s++)
        ready[s] = (struct chain_step){chain_code(&steps[s]),
                                       steps[s].operand ? steps[s].operand : out,
                                       steps[s].operand ? steps[s].advance : 0, steps[s].save};
    for (int64_t block = 0; block < blocks; block++) {
        vec r[CHAIN_VECTORS] = {{0}};
        for (int s = 0; s < steps_count; s++) {
            struct chain_step *step = &ready[s];
            const float *p = step->p;
            step->p += step->advance;
            switch (step->code) {
            case CHAIN_LOAD:
                EACH_VECTOR r[j] = load(p + j * LANES);
                break;
            case CHAIN_SPLAT:
                EACH_VECTOR r[j] = splat(*p);
                break;
                CHAIN_BINARY(ISA_ADD)
                CHAIN_BINARY(ISA_SUB)
                CHAIN_BINARY(ISA_MUL)
                CHAIN_BINARY(ISA_DIV)
                CHAIN_BINARY(ISA_MAXIMUM)
                CHAIN_BINARY(ISA_MINIMUM)
                CHAIN_BINARY(ISA_SQUARED_DIFFERENCE)
                CHAIN_BINARY(ISA_RELU_GRAD)
                CHAIN_BINARY(ISA_GREATER)
                CHAIN_BINARY(ISA_GREATER_EQUAL)
                CHAIN_BINARY(ISA_LESS)
                CHAIN_BINARY(ISA_LESS_EQUAL)
                CHAIN_UNARY(ISA_NEG)
                CHAIN_UNARY(ISA_ABS)
                CHAIN_UNARY(ISA_SQUARE)
                CHAIN_UNARY(ISA_SQRT)
                CHAIN_UNARY(ISA_RSQRT)
                CHAIN_UNARY(ISA_RECIPROCAL)
                CHAIN_UNARY(ISA_RELU)
                CHAIN_UNARY(ISA_EXP)
                CHAIN_UNARY(ISA_LOG)
                CHAIN_UNARY(ISA_TANH)
                CHAIN_UNARY(ISA_SIGMOID)
                CHAIN_UNARY(ISA_COPY)
            }
            if (step->save)
                EACH_VECTOR store(step->save + j * LANES, r[j]);
        }
        EACH_VECTOR store(out + (block * CHAIN_VECTORS + j) * LANES, r[j]);
    }
}
