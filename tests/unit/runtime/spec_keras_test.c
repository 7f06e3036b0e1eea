/* spec_keras_test.c - models in job specs as Keras writes them, versions 2 and 3. */

#include "base/str.h"
#include "runtime/dtype.h"
#include "runtime/spec/config.h"
#include "tests/unit/runtime/specs.h"

#define KERAS_WITH(layers, more)                                                               \
    "{\"model\": {\"keras\": {\"class_name\": \"Functional\", \"config\": {\"layers\": "       \
    "[" layers "], \"output_layers\": [[\"a\", 0, 0]]}}}, " DATA more "}"
#define KERAS(layers) KERAS_WITH(layers, "")
#define DENSE_OF(dtype)                                                                        \
    "{\"class_name\": \"Dense\", \"config\": {\"name\": \"a\", \"units\": 2, "                 \
    "\"dtype\": " dtype "}, \"inbound_nodes\": [[[\"i\", 0, 0]]]}"
#define POLICY(name)                                                                           \
    "{\"module\": \"keras\", \"class_name\": \"DTypePolicy\", \"config\": {\"name\": \"" name  \
    "\"}}"
#define INPUT_I                                                                                \
    "{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"i\"}, \"inbound_nodes\": []}"
#define TENSOR_I                                                                               \
    "{\"class_name\": \"__keras_tensor__\", \"config\": {\"keras_history\": [\"i\", 0, 0]}}"

/* A model as a layer of another, called twice: its layers are listed, the second time shared.
 */
TEST(spec_flattens_models_inside_of_models)
{
    struct arena *arena = arena_new();
    const char *text =
        "{\"model\": {\"keras\": {\"class_name\": \"Functional\", \"config\": {\"layers\": ["
        "{\"class_name\": \"InputLayer\", \"config\": {\"name\": \"in\"}, \"inbound_nodes\": "
        "[]}, {\"class_name\": \"Sequential\", \"config\": {\"name\": \"block\", \"layers\": ["
        "{\"class_name\": \"Dense\", \"config\": {\"name\": \"d\", \"units\": 4}}, "
        "{\"class_name\": \"ReLU\", \"config\": {\"name\": \"r\"}}]}, \"name\": \"block\", "
        "\"inbound_nodes\": [[[\"in\", 0, 0, {}]], [[\"block\", 0, 0, {}]]]}], "
        "\"input_layers\": [[\"in\", 0, 0]], \"output_layers\": [[\"block\", 1, 0]]}}}, " DATA
        "}";
    const struct spec *spec = parse(arena, text);
    CHECK_INT(spec->layers_count, 5);
    CHECK_TEXT(spec->layers[1].name, "block.d");
    CHECK_TEXT(spec->layers[2].name, "block.r");
    CHECK_INT(spec->layers[1].inputs[0].layer, 0);
    CHECK_INT(spec->layers[3].shared, 1);
    CHECK_INT(spec->layers[3].inputs[0].layer, 2);
    CHECK_INT(spec->layers[4].shared, 2);
    CHECK_INT(spec->output, 4);
    arena_free(arena);
}

/* Each call takes what the layer behind gives, so that a pass over them adds one. */
TEST(spec_refuses_models_of_keras_that_take_too_long)
{
    enum { LAYERS = 25, CALLS = 64 };
    struct arena *arena = arena_new();
    struct error err;
    struct str text = {0};
    str_add(&text, "{\"model\": {\"keras\": {\"class_name\": \"Functional\", \"config\": "
                   "{\"layers\": [");
    for (int i = 0; i < LAYERS; i++) {
        str_printf(&text,
                   "{\"class_name\": \"Flatten\", \"name\": \"d%d\", \"config\": {}, "
                   "\"inbound_nodes\": [",
                   i);
        for (int n = 0; n < CALLS; n++) {
            bool last = i + 1 == LAYERS;
            str_printf(&text, "%s[[\"d%d\",%d,0]]", n ? "," : "", last && n ? 0 : i + 1,
                       last && n ? n - 1 : n);
        }
        str_add(&text, "]},");
    }
    str_printf(&text,
               "{\"class_name\": \"InputLayer\", \"name\": \"d%d\", \"config\": {}, "
               "\"inbound_nodes\": []}], \"output_layers\": [[\"d0\", 0, 0]]}}}, " DATA "}",
               LAYERS);
    CHECK_FAILS(spec_parse(arena, text.data, text.size, &err), &err, INVALID);
    if (!strstr(err.text, "too many layers whose inputs come after them"))
        CHECK_STOP("%s, not: too many layers", err.text);
    str_release(&text);
    arena_free(arena);
}

/* Versions 2 and 3 write inputs in different ways; a layer may be called twice. */
TEST(spec_reads_models_of_keras)
{
    static const char *const texts[] = {
        "[[[\"d\", 0, 0, {}], [\"d\", 1, 0, {}]]]",
        "[{\"args\": [[{\"class_name\": \"__keras_tensor__\", \"config\": {\"keras_history\": "
        "[\"d\", 0, 0]}}, {\"class_name\": \"__keras_tensor__\", \"config\": "
        "{\"keras_history\": [\"d\", 1, 0]}}]], \"kwargs\": {}}]"};
    for (int i = 0; i < ARRAY_LEN(texts); i++) {
        struct arena *arena = arena_new();
        const char *text = arena_printf(
            arena,
            "{\"model\": {\"keras\": {\"class_name\": \"Functional\", \"config\": {\"layers\": "
            "["
            "{\"class_name\": \"Add\", \"name\": \"sum\", \"config\": {}, "
            "\"inbound_nodes\": %s},"
            "{\"class_name\": \"InputLayer\", \"name\": \"x\", \"config\": {}, "
            "\"inbound_nodes\": []},"
            "{\"class_name\": \"Dense\", \"name\": \"d\", \"config\": {\"units\": 3, "
            "\"activation\": {\"class_name\": \"function\", \"config\": \"relu\"}, "
            "\"kernel_initializer\": {\"class_name\": \"HeNormal\", \"config\": {\"seed\": "
            "null}}}, \"inbound_nodes\": [[[\"x\", 0, 0, {}]], [[\"x\", 0, 0, {}]]]}],"
            "\"output_layers\": [[\"sum\", 0, 0]]}}}, " DATA "}",
            texts[i]);
        const struct spec *spec = parse(arena, text);
        CHECK_INT(spec->layers_count, 4);
        CHECK_TEXT(spec->layers[0].name, "x");
        CHECK_TEXT(spec->layers[1].name, "d");
        CHECK_TEXT(config_choice(spec->layers[1].config, "activation"), "relu");
        CHECK_INT(spec->layers[2].shared, 1);
        CHECK_TEXT(spec->layers[3].name, "sum");
        CHECK_INT(spec->layers[3].inputs_count, 2);
        CHECK_INT(spec->layers[3].inputs[1].layer, 2);
        CHECK_INT(spec->output, 3);
        arena_free(arena);
    }
}

static const struct bad_spec bad_specs[] = {
    {"{\"model\": {\"keras\": {}}, " DATA "}", INVALID, "/model/keras/class_name",
     "Sequential and Functional"},
    {"{\"model\": {\"keras\": {}, \"layers\": []}, " DATA "}", INVALID, "/model/keras",
     "one of the two"},
    {"{\"model\": {\"keras\": {\"class_name\": \"Sequential\", \"config\": {\"layers\": "
     "[{\"class_name\": \"Dens\", \"config\": {\"name\": \"a\"}}]}}}, " DATA "}",
     INVALID, "/model/keras/config/layers/0/class_name", "did you mean \"Dense\""},
    {"{\"model\": {\"keras\": {\"class_name\": \"Functional\", \"config\": {\"layers\": "
     "[{\"class_name\": \"Flatten\", \"name\": \"a\", \"config\": {}, \"inbound_nodes\": "
     "[[[\"a\", 0, 0, {}]]]}]}}}, " DATA "}",
     INVALID, "/model/keras/config/layers/0", "goes in a circle"},
    {KERAS("{\"class_name\": \"InputLayer\", \"name\": \"a\", \"config\": {}},"
           "{\"class_name\": \"Flatten\", \"name\": \"b\", \"config\": {}, \"inbound_nodes\": "
           "[[[\"a\", 0, 8, {}]]]}"),
     INVALID, "/model/keras/config/layers/1", "an output that none has"},
    {KERAS("{\"class_name\": \"InputLayer\", \"name\": \"a\", \"config\": {}},"
           "{\"class_name\": \"Flatten\", \"name\": \"b\", \"config\": {}, \"inbound_nodes\": "
           "[[[\"a\", 0, -1, {}]]]}"),
     INVALID, "/model/keras/config/layers/1", "an output that none has"},
    {KERAS("{\"class_name\": \"InputLayer\", \"name\": \"a\", \"config\": {}},"
           "{\"class_name\": \"Flatten\", \"name\": \"b\", \"config\": {}}"),
     INVALID, "/model/keras/config/layers/1", "called with nothing"},
    {KERAS(INPUT_I ", {\"class_name\": \"GRU\", \"config\": {\"name\": \"a\", \"units\": 2}, "
                   "\"inbound_nodes\": [{\"args\": [" TENSOR_I
                   "], \"kwargs\": {\"mask\": " TENSOR_I "}}]}"),
     UNIMPLEMENTED, "/model/keras/config/layers/1", "a mask of \"i\""},
    {KERAS(INPUT_I
           ", {\"module\": \"keras.src.ops.numpy\", \"class_name\": \"Exp\", \"config\": "
           "{\"name\": \"e\"}, \"inbound_nodes\": [{\"args\": [" TENSOR_I
           "]}]}, {\"class_name\": \"ReLU\", \"config\": {\"name\": \"a\"}, "
           "\"inbound_nodes\": [[[\"e\", 0, 0]]]}"),
     UNIMPLEMENTED, "/model/keras/config/layers/2", "the operation \"e\""},
    {KERAS("{\"class_name\": \"InputLayer\", \"name\": \"a\", \"config\": {}},"
           "{\"class_name\": \"InputLayer\", \"name\": \"a\", \"config\": {}}"),
     INVALID, "/model/keras/config/layers/1", "the same name"},
    {KERAS(INPUT_I ", {\"class_name\": \"Input\", \"config\": {\"name\": \"a\"}, "
                   "\"inbound_nodes\": [{\"args\": [" TENSOR_I "], \"kwargs\": {}}]}"),
     INVALID, "/model/keras/config/layers/1", "takes its input from the data"},
    {KERAS(INPUT_I "," DENSE_OF("\"float16\"")), UNIMPLEMENTED,
     "/model/keras/config/layers/1/config/dtype", "computes in \"float16\""},
    {KERAS(INPUT_I "," DENSE_OF(POLICY("mixed_float16"))), UNIMPLEMENTED,
     "/model/keras/config/layers/1/config/dtype", "float32 and mixed_bfloat16"},
    {KERAS(INPUT_I "," DENSE_OF("7")), UNIMPLEMENTED,
     "/model/keras/config/layers/1/config/dtype", "a policy of its own"},
};

TEST(spec_refuses_models_of_keras_with_pointer_and_reason)
{
    for (int i = 0; i < ARRAY_LEN(bad_specs); i++)
        check_bad_spec(&bad_specs[i]);
}

/* Mixed precision is a layer's affair in Keras; the spec's own word goes before it. */
TEST(spec_takes_the_precision_that_layers_have)
{
    static const struct {
        const char *text;
        int precision;
    } cases[] = {
        {KERAS(INPUT_I "," DENSE_OF("\"float32\"")), F32},
        {KERAS(INPUT_I "," DENSE_OF("null")), F32},
        {KERAS(INPUT_I "," DENSE_OF(POLICY("float32"))), F32},
        {KERAS(INPUT_I "," DENSE_OF("\"mixed_bfloat16\"")), BF16},
        {KERAS(INPUT_I "," DENSE_OF(POLICY("mixed_bfloat16"))), BF16},
        {KERAS_WITH(INPUT_I "," DENSE_OF(POLICY("mixed_bfloat16")),
                    ", \"train\": {\"precision\": \"float32\"}"),
         F32},
    };
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *arena = arena_new();
        CHECK_INT(parse(arena, cases[i].text)->train.precision, cases[i].precision);
        arena_free(arena);
    }
}
