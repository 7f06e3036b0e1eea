/* models.c - the LSTM and the small GPT as job specs, see models.h. */

#include "tests/bench/models.h"

#include <math.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/model/model.h"
#include "runtime/spec/spec.h"

enum { STEPS = 64 }; /* of the sequences of both */

static const char lstm_head[] =
    "{\"layer\": \"Embedding\", \"input_dim\": 64, \"output_dim\": 256},"
    "{\"layer\": \"LSTM\", \"units\": 256, \"return_sequences\": true,"
    " \"recurrent_initializer\": \"zeros\"}," /* all start from other numbers */
    "{\"layer\": \"Dense\", \"units\": 64}";
static const char lstm_optimizer[] =
    "{\"name\": \"Adam\", \"learning_rate\": 0.001, \"epsilon\": 1e-8}";

/* One block of the GPT: @ is its number, ~ that of the block before. */
static const char gpt_block[] =
    ",{\"layer\": \"LayerNormalization\", \"name\": \"n@\", \"epsilon\": 1e-5},"
    "{\"layer\": \"MultiHeadAttention\", \"name\": \"at@\", \"num_heads\": 4, \"key_dim\": 32,"
    "  \"use_bias\": false, \"use_causal_mask\": true},"
    "{\"layer\": \"Add\", \"name\": \"r@\", \"inputs\": [\"b~\", \"at@\"]},"
    "{\"layer\": \"LayerNormalization\", \"name\": \"o@\", \"epsilon\": 1e-5},"
    "{\"layer\": \"Dense\", \"name\": \"f@\", \"units\": 512, \"use_bias\": false,"
    "  \"activation\": \"gelu\"},"
    "{\"layer\": \"Dense\", \"name\": \"g@\", \"units\": 128, \"use_bias\": false},"
    "{\"layer\": \"Add\", \"name\": \"b@\", \"inputs\": [\"r@\", \"g@\"]}";
static const char gpt_head[] =
    "{\"layer\": \"ReversibleEmbedding\", \"name\": \"tokens\", \"input_dim\": 65,"
    "  \"output_dim\": 128},"
    "{\"layer\": \"PositionEmbedding\", \"name\": \"b0\", \"sequence_length\": 64}";
static const char gpt_tail[] =
    ",{\"layer\": \"LayerNormalization\", \"name\": \"last\", \"epsilon\": 1e-5},"
    "{\"reuse\": \"tokens\", \"inputs\": \"last\"}";
static const char gpt_optimizer[] =
    "{\"name\": \"AdamW\", \"learning_rate\": 0.001, \"beta_2\": 0.99, \"epsilon\": 1e-8,"
    " \"weight_decay\": 0.1, \"global_clipnorm\": 1.0}";

struct sequence_model {
    const char *name;
    int64_t characters;
    const char *head, *block, *tail, *optimizer;
    int blocks;
};

static const struct sequence_model models[] = {
    {"lstm", 64, lstm_head, "", "", lstm_optimizer, 0},
    {"gpt", 65, gpt_head, gpt_block, gpt_tail, gpt_optimizer, 4},
};

static const struct sequence_model *find(const struct bench_case *c)
{
    int i = 0;
    while (strcmp(models[i].name, c->name) != 0)
        assert(++i < ARRAY_LEN(models));
    return &models[i];
}

static void write_block(const char *block, int number, struct str *out)
{
    for (; *block; block++) {
        if (*block == '@' || *block == '~')
            str_printf(out, "%d", number - (*block == '~'));
        else
            str_add_char(out, *block);
    }
}

static void write_spec(const struct sequence_model *model, int64_t batch, struct str *out)
{
    str_printf(out, "{\"name\": \"%s\", \"model\": {\"layers\": [%s", model->name, model->head);
    for (int i = 1; i <= model->blocks; i++)
        write_block(model->block, i, out);
    str_printf(out,
               "%s]}, \"data\": {\"dataset\": \"characters\", \"batch_size\": %lld}, "
               "\"train\": {\"optimizer\": %s, \"metrics\": [], \"steps\": 1}}",
               model->tail, (long long)batch, model->optimizer);
}

/* --- variables --- */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && !strcmp(text + size - tail, end);
}

/* Uniform between -1/sqrt(fan in) and that; scales are ones, other vectors zeros. */
static bool fill(const struct model_variable *variable, int index, struct tensor *value,
                 struct error *err)
{
    const struct shape *shape = &variable->shape;
    int64_t fan = 1;
    if (!tensor_init(value, F32, shape, err))
        return false;
    for (int i = 0; i < shape->rank - 1; i++)
        fan *= shape->dims[i];
    float scale = (float)(1 / sqrt((double)fan));
    float constant = ends_with(variable->name, "gamma") ? 1 : 0;
    for (int64_t i = 0; i < value->count; i++)
        tensor_f32_mut(value)[i] =
            shape->rank > 1 ? (bench_number(2 + (uint64_t)index, (uint64_t)i) * 2 - 1) * scale
                            : constant;
    return true;
}

/* Assigns the variables' first values once the model has made its own. */
static bool add_starts(const struct model *model, struct error *err)
{
    struct builder b = {.graph = model->graph, .scope = "bench/", .err = err};
    struct node *init = graph_find(model->graph, MODEL_INIT);
    struct node *starts[256] = {init};
    int count = 1, index = 0;
    for (int i = 0; i < model->variables_count; i++) {
        const struct model_variable *variable = &model->variables[i];
        struct tensor value;
        if (!variable->trainable)
            continue;
        if (count == ARRAY_LEN(starts))
            return fail(err, INVALID, "more variables than %d", count);
        if (!fill(variable, index++, &value, err))
            return false;
        struct edge handle = {graph_find(model->graph, variable->name), 0};
        struct edge start = builder_const(&b, "start", &value);
        tensor_release(&value);
        struct edge assign = builder_add(&b, "AssignVariableOp", "assign",
                                         INPUTS(handle, start), ATTRS(attr_type("dtype", F32)));
        if (!builder_ok(&b))
            return false;
        graph_add_control(model->graph, assign.from, init);
        starts[count++] = assign.from;
    }
    b.scope = "";
    builder_group(&b, BENCH_INIT, starts, count);
    return builder_ok(&b);
}

struct graph *bench_model_build(const struct bench_case *c, struct error *err)
{
    const struct sequence_model *from = find(c);
    struct arena *arena = arena_new();
    struct str text = {0};
    struct model model = {0};
    const struct model_data data = {
        .features = &(const struct model_feature){.name = BENCH_IMAGES,
                                                  .dtype = I32,
                                                  .shape = SHAPE(STEPS)},
        .features_count = 1,
        .target = {.name = BENCH_LABELS, .dtype = I32, .shape = SHAPE(STEPS)},
        .classes = from->characters,
    };
    write_spec(from, c->examples, &text);
    const struct spec *spec = spec_parse(arena, text.data, text.size, err);
    bool ok = spec && model_build(spec, &data, &model, err);
    if (ok && !add_starts(&model, err)) {
        model_release(&model);
        ok = false;
    }
    str_release(&text);
    arena_free(arena);
    return ok ? model.graph : NULL;
}

bool bench_model_data(const struct bench_case *c, struct tensor *inputs, struct tensor *labels,
                      struct error *err)
{
    const struct sequence_model *model = find(c);
    struct tensor *const both[] = {inputs, labels};
    for (int i = 0; i < 2; i++) {
        if (!tensor_init(both[i], I32, &SHAPE(c->examples, STEPS), err))
            return false;
        for (int64_t k = 0; k < both[i]->count; k++)
            tensor_set_number(
                both[i], k,
                (double)(bench_bits((uint64_t)i, (uint64_t)k) % (uint64_t)model->characters));
    }
    return true;
}
