/*
 * chain.c - _Elementwise: several functions of float, element by element, in one pass.
 *
 * The node is a small program: each instruction is an op's name and one or two operands, which
 * are inputs of the node or results before it.  It is run over tiles that stay in the cache,
 * by the same loops that the ops themselves use, so the bits are the same.
 *
 * Operands are broadcast as numpy does.  An instruction whose result is smaller than the
 * output (it sees only small inputs) is run once, before the tiles.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"
#include "kernels/list.h"

enum {
    TILE = 2048, /* floats: a few of them fit into the first cache */
    SMALL = 64,  /* results up to this size need no scratch */
    STEPS_MAX = 32,
    INPUTS_MAX = STEPS_MAX + 1,
};

struct instruction {
    bool binary;
    int operation; /* enum isa_binary or isa_unary */
    int a, b;      /* registers: inputs first, then results; b is -1 when unary */
    int slot;      /* tile of the result; -1: that of the last, which is the output */
};

struct program {
    int inputs, steps, slots;
    uint64_t saved; /* results that are read by others than the next step */
    struct instruction step[STEPS_MAX];
};

/* --- reading the node --- */

static const struct {
    const char *op;
    bool binary;
    int operation;
} table[] = {
    {"Add", true, ISA_ADD},
    {"AddV2", true, ISA_ADD},
    {"Sub", true, ISA_SUB},
    {"Mul", true, ISA_MUL},
    {"Div", true, ISA_DIV},
    {"RealDiv", true, ISA_DIV},
    {"Maximum", true, ISA_MAXIMUM},
    {"Minimum", true, ISA_MINIMUM},
    {"SquaredDifference", true, ISA_SQUARED_DIFFERENCE},
    {"ReluGrad", true, ISA_RELU_GRAD},
    {"Greater", true, ISA_GREATER},
    {"GreaterEqual", true, ISA_GREATER_EQUAL},
    {"Less", true, ISA_LESS},
    {"LessEqual", true, ISA_LESS_EQUAL},
    {"Cast", false, ISA_COPY}, /* of what those give, 0 or 1 already */
    {"Neg", false, ISA_NEG},
    {"Abs", false, ISA_ABS},
    {"Square", false, ISA_SQUARE},
    {"Sqrt", false, ISA_SQRT},
    {"Rsqrt", false, ISA_RSQRT},
    {"Reciprocal", false, ISA_RECIPROCAL},
    {"Relu", false, ISA_RELU},
    {"Exp", false, ISA_EXP},
    {"Log", false, ISA_LOG},
    {"Tanh", false, ISA_TANH},
    {"Sigmoid", false, ISA_SIGMOID},
};

static bool read_op(const char *name, struct instruction *step)
{
    for (int i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(table[i].op, name) == 0) {
            step->binary = table[i].binary;
            step->operation = table[i].operation;
            return true;
        }
    }
    return false;
}

/* Results share tiles: one whose last reader has come is free, for that reader's result too. */
static void give_slots(struct program *program)
{
    int last_use[INPUTS_MAX + STEPS_MAX] = {0}, holder[STEPS_MAX];
    for (int s = 0; s < program->steps; s++) {
        const struct instruction *step = &program->step[s];
        last_use[step->a] = s;
        if (step->b >= 0)
            last_use[step->b] = s;
    }
    for (int s = 0; s < program->steps - 1; s++) {
        int slot = 0;
        while (slot < program->slots && last_use[holder[slot]] > s)
            slot++;
        if (slot == program->slots)
            program->slots++;
        holder[slot] = program->inputs + s;
        program->step[s].slot = slot;
    }
    program->step[program->steps - 1].slot = -1;
}

/* A result that the next step takes at once need not be stored. */
static void find_saved(struct program *program)
{
    for (int s = 0; s < program->steps; s++) {
        const struct instruction *step = &program->step[s];
        int before = program->inputs + s - 1;
        bool a_at_hand = step->a == before;
        bool b_at_hand = !a_at_hand && step->b == before;
        if (step->a >= program->inputs && !a_at_hand)
            program->saved |= BIT(step->a - program->inputs);
        if (step->b >= program->inputs && !b_at_hand)
            program->saved |= BIT(step->b - program->inputs);
    }
}

static bool read_program(const struct node *node, struct program *program)
{
    int operands;
    const struct attr *ops = node_attr(node, "ops");
    const int64_t *operand = node_attr_ints(node, "operands", &operands);
    program->inputs = node->inputs_count;
    if (!ops || ops->kind != ATTR_STRING || ops->count < 1 || ops->count > STEPS_MAX ||
        program->inputs > INPUTS_MAX || operands != 2 * ops->count)
        return false;
    program->steps = ops->count;
    for (int s = 0; s < program->steps; s++) {
        struct instruction *step = &program->step[s];
        int64_t known = program->inputs + s;
        if (!read_op(ops->strings[s].data, step))
            return false;
        if (operand[2 * s] < 0 || operand[2 * s] >= known || operand[2 * s + 1] >= known ||
            (step->binary ? operand[2 * s + 1] < 0 : operand[2 * s + 1] != -1))
            return false;
        step->a = (int)operand[2 * s];
        step->b = (int)operand[2 * s + 1];
    }
    give_slots(program);
    find_saved(program);
    return true;
}

static bool chain_accepts(const struct node *node)
{
    struct program program = {0};
    return read_program(node, &program);
}

static bool chain_prepare(const struct node *node, void **state, struct error *err)
{
    struct program *program = alloc_bytes(sizeof(*program));
    if (!read_program(node, program)) {
        free(program);
        return fail(err, INVALID, "node '%s' is no elementwise program", node->name);
    }
    *state = program;
    return true;
}

/* --- registers --- */

/* How a register is read while elements of the output are made in their order. */
struct reg {
    const float *data; /* NULL: a result that is made tile by tile */
    struct shape shape;
    bool whole;  /* of the output's shape */
    bool scalar; /* one element */
    /* Otherwise, over joined dimensions of the output, innermost first: */
    int rank;
    int64_t dims[LIMIT_TENSOR_RANK];
    int64_t steps[LIMIT_TENSOR_RANK];
};

/* Works out how `reg` repeats over a result of `shape`. */
static void aim(struct reg *reg, const struct shape *shape)
{
    reg->whole = shape_equal(&reg->shape, shape);
    reg->scalar = !reg->whole && shape_count(&reg->shape) == 1;
    reg->rank = 0;
    if (reg->whole || reg->scalar)
        return;
    int64_t step = 1;
    for (int i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dims[shape->rank - 1 - i];
        int64_t own = i < reg->shape.rank ? reg->shape.dims[reg->shape.rank - 1 - i] : 1;
        int64_t now = own == 1 ? 0 : step;
        step *= own;
        if (dim == 1)
            continue;
        int last = reg->rank - 1;
        if (last >= 0 && now == reg->steps[last] * reg->dims[last]) {
            reg->dims[last] *= dim;
            continue;
        }
        reg->dims[reg->rank] = dim;
        reg->steps[reg->rank++] = now;
    }
}

/* The elements that stand at [from, from + count) of the output. */
static void expand(const struct reg *reg, int64_t from, int64_t count, float *to)
{
    while (count > 0) {
        int64_t inner = from % reg->dims[0], rest = from / reg->dims[0];
        int64_t at = inner * reg->steps[0];
        for (int i = 1; i < reg->rank; i++) {
            at += rest % reg->dims[i] * reg->steps[i];
            rest /= reg->dims[i];
        }
        int64_t run = reg->dims[0] - inner < count ? reg->dims[0] - inner : count;
        if (reg->steps[0])
            memcpy(to, reg->data + at, (size_t)run * sizeof(float));
        else
            for (int64_t i = 0; i < run; i++)
                to[i] = reg->data[at];
        from += run;
        to += run;
        count -= run;
    }
}

/* --- running --- */

struct work {
    const struct program *program;
    struct reg reg[INPUTS_MAX + STEPS_MAX];
    float *out;
    struct shape shape;
    int64_t tile; /* elements of one */
    int spread;   /* registers that must be spread out over the output */
};

/* Operand `index` for the tile at `from`; what must be spread out goes to `spare`. */
static const float *operand(const struct work *work, int index, int64_t from, int64_t count,
                            float *tiles, float *spare, bool *scalar)
{
    const struct reg *reg = &work->reg[index];
    const struct program *program = work->program;
    *scalar = reg->data && reg->scalar;
    if (!reg->data)
        return tiles + program->step[index - program->inputs].slot * work->tile;
    if (reg->scalar)
        return reg->data;
    if (reg->whole)
        return reg->data + from;
    expand(reg, from, count, spare);
    return spare;
}

static void run_step(const struct work *work, const struct instruction *step, int64_t from,
                     int64_t count, float *tiles, float *to)
{
    float *spare = tiles + work->program->slots * work->tile;
    bool a_scalar, b_scalar = false;
    const float *a = operand(work, step->a, from, count, tiles, spare, &a_scalar);
    const float *b =
        step->binary ? operand(work, step->b, from, count, tiles, spare + work->tile, &b_scalar)
                     : NULL;
    assert(!(a_scalar && (b_scalar || !step->binary))); /* one has the result's shape */
    if (step->binary)
        isa()->binary((enum isa_binary)step->operation, count, a, a_scalar, b, b_scalar, to);
    else
        isa()->unary((enum isa_unary)step->operation, count, a, to);
}

/*
 * The part of the program that is left when small results are there, as steps of a value that
 * stays in registers; operands for the elements from `from` on.
 */
struct steps {
    struct isa_step step[2 * STEPS_MAX];
    int count;
};

static void add_step(const struct work *work, struct steps *steps, struct isa_step step,
                     int index, int64_t from, float *const *spread, float *tiles)
{
    const struct reg *reg = index < 0 ? NULL : &work->reg[index];
    int inputs = work->program->inputs;
    int64_t block = 8 * isa()->lanes;
    if (reg && !reg->data) { /* a result that was saved */
        step.operand = tiles + work->program->step[index - inputs].slot * work->tile;
    } else if (reg && reg->scalar) {
        step.operand = reg->data;
        step.scalar = true;
    } else if (reg) {
        step.operand = reg->whole ? reg->data + from : spread[index];
        step.advance = block;
    }
    steps->step[steps->count++] = step;
}

static void write_steps(const struct work *work, struct steps *steps, int64_t from,
                        float *const *spread, float *tiles)
{
    const struct program *program = work->program;
    int last = -1; /* the register whose value is at hand */
    steps->count = 0;
    for (int s = 0; s < program->steps; s++) {
        const struct instruction *in = &program->step[s];
        int result = program->inputs + s;
        if (work->reg[result].data)
            continue;
        struct isa_step step = {.kind = in->binary ? ISA_STEP_BINARY : ISA_STEP_UNARY,
                                .operation = in->operation};
        int operand = in->b;
        if (in->a != last && in->b == last && in->binary) {
            step.kind = ISA_STEP_REVERSED;
            operand = in->a;
        } else if (in->a != last) {
            add_step(work, steps, (struct isa_step){.kind = ISA_STEP_LOAD}, in->a, from, spread,
                     tiles);
        }
        if (program->saved >> s & 1)
            step.save = tiles + in->slot * work->tile;
        add_step(work, steps, step, operand, from, spread, tiles);
        last = result;
    }
}

/* What of [from,to) is whole blocks; returns where the rest begins. */
static int64_t run_blocks(const struct work *work, int64_t from, int64_t to, float *tiles)
{
    const struct program *program = work->program;
    float *spread[INPUTS_MAX + STEPS_MAX], *spare = tiles + (program->slots + 2) * work->tile;
    int64_t block = 8 * isa()->lanes, length = work->spread ? work->tile : to - from;
    while (to - from >= block) {
        struct steps steps;
        int64_t blocks = (to - from < length ? to - from : length) / block;
        int spreads = 0;
        for (int i = 0; work->spread && i < program->inputs + program->steps; i++) {
            const struct reg *reg = &work->reg[i];
            if (!reg->data || reg->whole || reg->scalar)
                continue;
            spread[i] = spare + spreads++ * work->tile;
            expand(reg, from, blocks * block, spread[i]);
        }
        write_steps(work, &steps, from, spread, tiles);
        isa()->chain(steps.step, steps.count, blocks, work->out + from);
        from += blocks * block;
    }
    return from;
}

/* Elements [from,to) of the output: whole blocks, and the rest tile by tile. */
static void run_range(const struct work *work, int64_t from, int64_t to, float *tiles)
{
    const struct program *program = work->program;
    if (work->tile > SMALL)
        from = run_blocks(work, from, to, tiles);
    for (int64_t at = from; at < to; at += work->tile) {
        int64_t count = to - at < work->tile ? to - at : work->tile;
        for (int s = 0; s < program->steps; s++) {
            const struct instruction *step = &program->step[s];
            if (work->reg[program->inputs + s].data)
                continue; /* was small, and is there */
            float *result = step->slot < 0 ? work->out + at : tiles + step->slot * work->tile;
            run_step(work, step, at, count, tiles, result);
        }
    }
}

static bool fail_relu_grad(const struct shape *gradients, const struct shape *features,
                           struct error *err)
{
    char a[SHAPE_TEXT_BYTES], b[SHAPE_TEXT_BYTES];
    return fail(err, INVALID,
                "Inputs to operation of type ReluGrad must have the same size and shape.  "
                "Input 0: %s != input 1: %s",
                shape_text(gradients, a, sizeof(a)), shape_text(features, b, sizeof(b)));
}

/* The shapes of all results; that of the last is the output's. */
static bool infer(struct work *work, const struct kernel_call *call, struct error *err)
{
    const struct program *program = work->program;
    for (int i = 0; i < program->inputs; i++) {
        const struct tensor *in = kernel_in(call, i);
        work->reg[i].data = tensor_f32(in);
        work->reg[i].shape = in->shape;
    }
    assert(program->steps > 0);
    for (int s = 0; s < program->steps; s++) {
        const struct instruction *step = &program->step[s];
        struct reg *result = &work->reg[program->inputs + s];
        const struct shape *a = &work->reg[step->a].shape;
        result->data = NULL;
        if (step->binary && step->operation == ISA_RELU_GRAD &&
            !shape_equal(a, &work->reg[step->b].shape))
            return fail_relu_grad(a, &work->reg[step->b].shape, err);
        if (!step->binary || shape_equal(a, &work->reg[step->b].shape))
            result->shape = *a;
        else if (!shape_broadcast(a, &work->reg[step->b].shape, &result->shape, err))
            return false;
        work->shape = result->shape;
    }
    return true;
}

/* Instructions whose result is not of the output's shape: each once, whole. */
static bool run_small_steps(struct work *work, struct kernel_call *call, float *tiles,
                            struct error *err)
{
    const struct program *program = work->program;
    for (int s = 0; s < program->steps - 1; s++) {
        const struct instruction step = program->step[s];
        struct reg *result = &work->reg[program->inputs + s];
        if (shape_equal(&result->shape, &work->shape))
            continue;
        int64_t count = shape_count(&result->shape);
        float *data = kernel_scratch(call, (size_t)count * sizeof(float), err);
        if (!data)
            return false;
        aim(&work->reg[step.a], &result->shape);
        if (step.binary)
            aim(&work->reg[step.b], &result->shape);
        for (int64_t at = 0; at < count; at += work->tile)
            run_step(work, &step, at, count - at < work->tile ? count - at : work->tile, tiles,
                     data + at);
        result->data = data;
    }
    return true;
}

/* At most how many registers will have to be spread out. */
static int aim_count(const struct work *work)
{
    int count = 0;
    for (int i = 0; i < work->program->inputs + work->program->steps; i++)
        count += !shape_equal(&work->reg[i].shape, &work->shape);
    return count;
}

/* How each register is read for elements of the output. */
static void aim_all(struct work *work)
{
    work->spread = 0;
    for (int i = 0; i < work->program->inputs + work->program->steps; i++) {
        struct reg *reg = &work->reg[i];
        if (!reg->data)
            continue;
        aim(reg, &work->shape);
        work->spread += !reg->whole && !reg->scalar;
    }
}

/* An input whose memory the output may take: of its shape, and read by position. */
static struct tensor *make_output(struct work *work, struct kernel_call *call,
                                  struct error *err)
{
    for (int i = 0; i < work->program->inputs; i++)
        if (call->reusable >> i & 1 && shape_equal(&work->reg[i].shape, &work->shape))
            return kernel_output_reuse(call, 0, i, &work->shape, err);
    return kernel_output(call, 0, &work->shape, err);
}

static void run_tiles(struct work *work, int threads, float *tiles, int64_t tiles_each)
{
    int64_t count = shape_count(&work->shape);
    assert(isa()->lanes * 8 <= work->tile || work->tile == SMALL);
    if (threads == 1) { /* even a team of one would cost more than a scalar */
        run_range(work, 0, count, tiles);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int t = 0; t < threads; t++) {
        struct range r = parallel_range(count, 16, threads, t);
        run_range(work, r.from, r.to, tiles + t * tiles_each);
    }
}

/* Whether all inputs are small and of one shape, as in scalar arithmetic. */
static bool is_small(const struct kernel_call *call)
{
    const struct tensor *first = call->in[0];
    if (first->count > SMALL)
        return false;
    for (int i = 1; i < call->in_count; i++)
        if (call->in[i]->count != first->count ||
            !shape_equal(&call->in[i]->shape, &first->shape))
            return false;
    return true;
}

/* One number: a vector with one lane in use would wait for the store before it. */
static float run_scalar(int operation, float a, float b)
{
    return operation == ISA_ADD   ? a + b
           : operation == ISA_SUB ? a - b
           : operation == ISA_MUL ? a * b
                                  : a / b;
}

/* Then there is nothing to work out: one instruction after the other, on the stack. */
static bool run_small(struct kernel_call *call, struct error *err)
{
    const struct program *program = call->state;
    const struct isa *ops = isa();
    float results[STEPS_MAX * SMALL];
    const float *data[INPUTS_MAX + STEPS_MAX];
    int64_t count = call->in[0]->count;
    struct tensor *out = kernel_output(call, 0, &call->in[0]->shape, err);
    for (int i = 0; i < program->inputs; i++)
        data[i] = tensor_f32(call->in[i]);
    for (int s = 0; out && s < program->steps; s++) {
        const struct instruction *step = &program->step[s];
        float *to = step->slot < 0 ? tensor_f32_mut(out) : results + step->slot * SMALL;
        data[program->inputs + s] = to;
        if (count == 1 && step->binary && step->operation <= ISA_DIV)
            *to = run_scalar(step->operation, *data[step->a], *data[step->b]);
        else if (step->binary)
            ops->binary((enum isa_binary)step->operation, count, data[step->a], false,
                        data[step->b], false, to);
        else
            ops->unary((enum isa_unary)step->operation, count, data[step->a], to);
    }
    return out;
}

static bool chain_run(struct kernel_call *call, struct error *err)
{
    if (is_small(call))
        return run_small(call, err);
    struct work work; /* large: filled as far as it is used */
    float on_stack[(STEPS_MAX + 2) * SMALL];
    work.program = call->state;
    if (!infer(&work, call, err))
        return false;
    struct tensor *out = make_output(&work, call, err);
    if (!out || out->count == 0)
        return out;
    work.out = tensor_f32_mut(out);
    work.tile = out->count <= SMALL ? SMALL : TILE;
    int threads = parallel_threads(call, out->count);
    int64_t tiles_each = (work.program->slots + 2 + aim_count(&work)) * work.tile;
    float *tiles = on_stack;
    if (work.tile > SMALL)
        tiles = kernel_scratch(call, (size_t)(threads * tiles_each) * sizeof(float), err);
    if (!tiles || !run_small_steps(&work, call, tiles, err))
        return false;
    aim_all(&work);
    run_tiles(&work, threads, tiles, tiles_each);
    return true;
}

const struct kernel kernel_elementwise_cpu = {
    .op = "_Elementwise",
    .device = CPU,
    .dtypes = BIT(F32),
    .accepts = chain_accepts,
    .prepare = chain_prepare,
    .release = free,
    .run = chain_run,
};
