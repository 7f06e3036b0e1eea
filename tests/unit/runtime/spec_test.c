/* spec_test.c - job specs: what is taken, what is filled in, and what is refused with which
 * words. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "runtime/model/optimizer.h"
#include "runtime/spec/config.h"
#include "tests/unit/runtime/specs.h"

#define DENSE "\"model\": {\"layers\": [{\"layer\": \"Dense\", \"units\": 10}]}"
#define LAYER(fields)                                                                          \
    "{\"model\": {\"layers\": [{\"layer\": \"Flatten\"}, {" fields "}]}, " DATA "}"
#define DATA_WITH(fields) "{" DENSE ", \"data\": {\"dataset\": \"m\", " fields "}}"
#define TRAIN(fields) "{" DENSE ", " DATA ", \"train\": {" fields "}}"
#define WITH(fields) "{" DENSE ", " DATA ", " fields "}"

#define BLOCKS(blocks, layers)                                                                 \
    "{\"model\": {\"blocks\": {" blocks "}, \"layers\": [" layers "]}, " DATA "}"
#define RESIDUAL                                                                               \
    "\"residual\": {\"arguments\": {\"units\": null, \"activation\": \"relu\"}, \"layers\": [" \
    "{\"layer\": \"Dense\", \"name\": \"wide\", \"units\": \"$units\", \"activation\": "       \
    "\"$activation\"}, {\"layer\": \"Dense\", \"units\": 4}, "                                 \
    "{\"layer\": \"Add\", \"inputs\": [\"input\", \"dense_1\"]}]}"

/* Blocks stand for their layers: filled in, named after their use, joined to what is around. */
TEST(spec_puts_the_layers_of_blocks_in_their_place)
{
    struct arena *arena = arena_new();
    const struct spec *spec =
        parse(arena, BLOCKS(RESIDUAL ", \"two\": {\"layers\": [{\"block\": \"residual\", "
                                     "\"repeat\": 2, \"units\": 8}]}",
                            "{\"layer\": \"Dense\", \"name\": \"first\", \"units\": 4}, "
                            "{\"block\": \"two\", \"name\": \"deep\"}, "
                            "{\"block\": \"residual\", \"units\": 5, \"activation\": \"tanh\", "
                            "\"inputs\": \"first\"}, "
                            "{\"layer\": \"Add\", \"inputs\": [\"deep\", \"residual\"]}"));
    static const char *const names[] = {"first",
                                        "deep.residual.wide",
                                        "deep.residual.dense_1",
                                        "deep.residual.add",
                                        "deep.residual_1.wide",
                                        "deep.residual_1.dense_1",
                                        "deep.residual_1.add",
                                        "residual.wide",
                                        "residual.dense_1",
                                        "residual.add",
                                        "add"};
    static const int inputs[][2] = {{-1},   {0}, {1}, {0, 2}, {3},   {4},
                                    {3, 5}, {0}, {7}, {0, 8}, {6, 9}};
    CHECK_INT(spec->layers_count, ARRAY_LEN(names));
    for (int i = 0; i < ARRAY_LEN(names); i++) {
        const struct spec_layer *layer = &spec->layers[i];
        CHECK_TEXT(layer->name, names[i]);
        CHECK_INT(layer->inputs_count, i == 0 ? 0 : config_is(layer->config, "Add") ? 2 : 1);
        for (int k = 0; k < layer->inputs_count; k++)
            CHECK_INT(layer->inputs[k].layer, inputs[i][k]);
    }
    CHECK_INT(config_int(spec->layers[4].config, "units"), 8);
    CHECK_TEXT(config_choice(spec->layers[7].config, "activation"), "tanh");
    CHECK_TEXT(config_choice(spec->layers[1].config, "activation"), "relu");
    CHECK_INT(spec->output, 10);
    struct str json = {0};
    spec_to_json(spec, &json);
    CHECK_INT(parse(arena, str_text(&json))->layers_count, spec->layers_count);
    str_release(&json);
    arena_free(arena);
}

/* Short forms are the optimizer's arguments; what is watched knows its direction. */
TEST(spec_reads_how_a_training_starts_and_ends)
{
    struct arena *arena = arena_new();
    const struct spec *spec = parse(
        arena,
        "{" DENSE ", " DATA ", \"train\": {\"optimizer\": \"sgd\", \"clip\": {\"value\": 2}, "
        "\"schedule\": {\"name\": \"CosineDecay\", \"initial_learning_rate\": 0.5, "
        "\"decay_steps\": 10}, \"moving_average\": {\"momentum\": 0.9, \"overwrite_every\": "
        "5}, "
        "\"eval_every\": 3, \"init\": {\"job\": 12, \"step\": 500, \"strict\": false}}, "
        "\"checkpoint\": {\"keep_best\": {\"metric\": \"val_accuracy\"}}, "
        "\"stop\": {\"target\": {\"metric\": \"loss\", \"max\": 0.5}, "
        "\"early\": {\"patience\": 4, \"min_delta\": 0.01}}}");
    const struct config *optimizer = spec->train.optimizer;
    CHECK(config_is(optimizer, "SGD"));
    CHECK(config_real(optimizer, "clipvalue") == 2 && config_is_null(optimizer, "clipnorm"));
    CHECK(optimizer_rate(optimizer) == 0.5);
    CHECK(config_bool(optimizer, "use_ema") && config_real(optimizer, "ema_momentum") == 0.9);
    CHECK_INT(config_int(optimizer, "ema_overwrite_frequency"), 5);
    CHECK_TEXT(spec->train.init.job, "12");
    CHECK_INT(spec->train.init.step, 500);
    CHECK(!spec->train.init.strict);
    CHECK_INT(spec->checkpoint.keep_best, 1);
    CHECK(spec->checkpoint.best_is_more);
    CHECK_TEXT(spec->stop.target.metric, "loss");
    CHECK_TEXT(spec->stop.early.metric, "val_loss");
    CHECK(!spec->stop.early.more && spec->stop.early.min_delta == 0.01);
    struct str first = {0}, second = {0};
    spec_to_json(spec, &first);
    spec_to_json(parse(arena, str_text(&first)), &second);
    CHECK_TEXT(str_text(&first), str_text(&second));
    CHECK(strstr(str_text(&first), "\"early\": {\"metric\": \"val_loss\", \"patience\": 4"));
    str_release(&first);
    str_release(&second);
    arena_free(arena);
}

/* A layer around a layer: Keras's "layer" is the key of the class here. */
TEST(spec_spells_wrapped_layers)
{
    struct arena *arena = arena_new();
    struct str text = {0};
    spec_to_json(parse(arena, LAYER("\"layer\": \"Bidirectional\", \"wrapped\": {\"layer\": "
                                    "\"LSTM\", \"units\": 3}")),
                 &text);
    const struct spec *again = parse(arena, str_text(&text));
    const struct config *inner = config_object(again->layers[1].config, "layer");
    CHECK_INT(config_int(inner, "units"), 3);
    str_release(&text);
    arena_free(arena);
}

/* The shortest spec there is: everything else is decided. */
TEST(spec_fills_in_defaults)
{
    struct arena *arena = arena_new();
    const struct spec *spec = parse(arena, "{" DENSE ", " DATA "}");
    CHECK_TEXT(spec->name, "mnist");
    CHECK_TEXT(spec->project, "default");
    CHECK_INT(spec->priority, 50);
    CHECK_INT(spec->layers_count, 1);
    CHECK_TEXT(spec->layers[0].name, "dense");
    CHECK(config_bool(spec->layers[0].config, "use_bias"));
    CHECK(config_is(config_object(spec->layers[0].config, "kernel_initializer"),
                    "GlorotUniform"));
    CHECK(config_is(config_object(spec->layers[0].config, "bias_initializer"), "Zeros"));
    CHECK_INT(spec->data.batch_size, 32);
    CHECK_INT(spec->data.shuffle, -1);
    CHECK(config_is(spec->train.optimizer, "Adam"));
    CHECK(optimizer_rate(spec->train.optimizer) == 0.001);
    CHECK(config_real(spec->train.optimizer, "epsilon") == 1e-7);
    CHECK_INT(spec->train.epochs, 1);
    CHECK_INT(spec->train.steps, 0);
    CHECK_INT(spec->train.metrics_count, 1);
    CHECK_TEXT(spec->train.metrics[0].name, "accuracy");
    CHECK(!spec->train.check_numerics);
    CHECK_INT(spec->tasks[ROLE_WORKER].replicas, 1);
    CHECK_INT(spec->tasks[ROLE_WORKER].cpu_millis, 1000);
    CHECK_INT(spec->tasks[ROLE_PS].replicas, 0);
    CHECK_INT(spec->checkpoint.every_seconds, 60);
    CHECK_INT(spec->checkpoint.keep_latest, 3);
    CHECK_INT(spec->restart_max, 5);
    CHECK_INT(spec->restart_on, 244); /* all that are not the job's own */
    CHECK_INT(spec->restart_bad, 0);
    CHECK_INT(spec->after_count, 0);
    const struct spec *later = parse(arena, WITH("\"after\": [12, \"prepare\"]"));
    CHECK_INT(later->after_count, 2);
    CHECK_TEXT(later->after[0], "12");
    struct str text = {0};
    spec_to_json(later, &text);
    later = parse(arena, str_text(&text));
    str_release(&text);
    CHECK_TEXT(later->after[1], "prepare");
    const struct spec *other = parse(arena, WITH("\"restart\": {\"never_on\": [\"memory\"], "
                                                 "\"exclude_bad_nodes\": 3}"));
    CHECK_INT(other->restart_on, 244 - (1 << 5));
    CHECK_INT(other->restart_bad, 3);
    arena_free(arena);
}

TEST(spec_takes_everything_it_names)
{
    struct arena *arena = arena_new();
    const struct spec *spec = parse(
        arena,
        "{\"version\": 1, \"name\": \"a.b-c_1\", \"project\": \"p\", \"queue\": \"q\", "
        "\"priority\": 100,"
        " \"tags\": [\"x\", \"y\"], \"seed\": 9007199254740991, \"notes\": "
        "\"gr\xc3\xbc\xc3\x9f\\n\", \"after\": [],"
        " \"model\": {\"layers\": ["
        "  {\"layer\": \"Conv2D\", \"filters\": 3, \"kernel_size\": [5, 3], \"strides\": 2, "
        "\"padding\": \"SAME\","
        "   \"activation\": \"relu\", \"use_bias\": false, \"dilation_rate\": [1, 1], "
        "\"groups\": 1,"
        "   \"data_format\": \"channels_last\", \"kernel_initializer\": \"HeNormal\"},"
        "  {\"layer\": \"Conv2D\", \"filters\": 4, \"kernel_size\": 3, \"name\": \"conv2d_1\"},"
        "  {\"layer\": \"Conv2D\", \"filters\": 5, \"kernel_size\": 3, \"kernel_regularizer\": "
        "null,"
        "   \"bias_initializer\": {\"name\": \"Constant\", \"value\": 0.5}},"
        "  {\"layer\": \"MaxPool2D\", \"pool_size\": 3}, {\"layer\": \"AveragePooling2D\", "
        "\"strides\": 1},"
        "  {\"layer\": \"flatten\"}, {\"layer\": \"Dropout\", \"rate\": 0.25},"
        "  {\"layer\": \"Dense\", \"units\": 7, \"kernel_initializer\": {\"name\": "
        "\"variance_scaling\","
        "   \"scale\": 3, \"mode\": \"fan_out\", \"distribution\": \"uniform\"}},"
        "  {\"layer\": \"Activation\", \"activation\": \"softmax\"}]},"
        " \"data\": {\"dataset\": \"digits\", \"batch_size\": 7, \"shuffle\": 10000, "
        "\"validation\": 9},"
        " \"train\": {\"loss\": \"SparseCategoricalCrossentropy\", \"metrics\": [], \"steps\": "
        "9, \"eval_every\": 3,"
        "  \"optimizer\": {\"name\": \"sgd\", \"learning_rate\": 0.5, \"momentum\": 0.9, "
        "\"nesterov\": true},"
        "  \"precision\": \"float32\", \"check_numerics\": false},"
        " \"tasks\": {\"worker\": {\"cpus\": 1.5, \"memory_bytes\": 1000000, \"gpus\": 1, "
        "\"gpu_type\": \"h200\","
        "  \"gpu_memory_bytes\": 5, \"node_labels\": {\"zone\": \"a\"}}, \"ps\": 0},"
        " \"strategy\": {\"mode\": \"sync\", \"backup_workers\": 0, \"compress\": \"none\", "
        "\"elastic\": false},"
        " \"placement\": {\"tasks\": \"spread\", \"pins\": {}}, \"checkpoint\": "
        "{\"every_steps\": 5, \"keep_latest\": "
        "1},"
        " \"restart\": {\"max\": 0}, \"stop\": {\"max_steps\": 8, \"max_seconds\": 7,"
        "  \"target\": {\"metric\": \"val_loss\", \"max\": 0.1}}, \"trace\": {\"every_steps\": "
        "2}}");
    const struct spec_layer *layers = spec->layers;
    CHECK_INT(spec->layers_count, 9);
    CHECK_TEXT(layers[0].name, "conv2d");
    CHECK_INT(config_ints(layers[0].config, "kernel_size", NULL)[0], 5);
    CHECK_INT(config_ints(layers[0].config, "kernel_size", NULL)[1], 3);
    CHECK_INT(config_ints(layers[0].config, "strides", NULL)[1], 2);
    CHECK_TEXT(config_choice(layers[0].config, "padding"), "same");
    CHECK(!config_bool(layers[0].config, "use_bias"));
    CHECK(config_is(config_object(layers[0].config, "kernel_initializer"), "HeNormal"));
    CHECK_TEXT(layers[2].name, "conv2d_2");
    CHECK(config_real(config_object(layers[2].config, "bias_initializer"), "value") == 0.5);
    CHECK(config_is_null(layers[3].config, "strides"));
    CHECK_INT(config_ints(layers[4].config, "strides", NULL)[0], 1);
    const struct config *initializer = config_object(layers[7].config, "kernel_initializer");
    CHECK_TEXT(config_choice(initializer, "mode"), "fan_out");
    CHECK_TEXT(config_choice(initializer, "distribution"), "uniform");
    CHECK_TEXT(config_choice(layers[8].config, "activation"), "softmax");
    CHECK_INT(layers[8].inputs_count, 1);
    CHECK_INT(layers[8].inputs[0].layer, 7);
    CHECK_INT(spec->output, 8);
    CHECK_INT(spec->data.shuffle, 10000);
    CHECK_INT(spec->data.validation, 9);
    CHECK_INT(spec->train.metrics_count, 0);
    CHECK(config_bool(spec->train.optimizer, "nesterov"));
    CHECK_INT(spec->train.epochs, 0);
    CHECK_INT(spec->tasks[ROLE_WORKER].cpu_millis, 1500);
    CHECK_TEXT(spec->tasks[ROLE_WORKER].node_labels[0].value, "a");
    CHECK_INT(spec->tasks[ROLE_WORKER].gpus, 1);
    CHECK(spec->spread);
    CHECK_INT(spec->checkpoint.every_seconds, 0);
    CHECK(spec->stop.target.has_max && !spec->stop.target.has_min);
    CHECK_INT(spec->trace_every_steps, 2);

    /* Written out and read back it is the same. */
    struct str first = {0}, second = {0};
    spec_to_json(spec, &first);
    spec_to_json(parse(arena, str_text(&first)), &second);
    CHECK_TEXT(str_text(&first), str_text(&second));
    str_release(&first);
    str_release(&second);
    arena_free(arena);
}

TEST(spec_takes_a_part_of_a_gpu)
{
    struct arena *arena = arena_new();
    struct str text = {0};
    const struct spec *spec = parse(arena, WITH("\"tasks\": {\"worker\": {\"gpus\": 0.25}}"));
    CHECK_INT(spec->tasks[ROLE_WORKER].gpus, 0);
    CHECK_INT(spec->tasks[ROLE_WORKER].gpu_share, 250);
    spec_to_json(spec, &text);
    CHECK(strstr(str_text(&text), "\"gpus\": 0.25"));
    spec = parse(arena, str_text(&text));
    CHECK_INT(spec->tasks[ROLE_WORKER].gpu_share, 250);
    str_release(&text);
    spec = parse(arena, WITH("\"tasks\": {\"worker\": {\"gpus\": 2.0}}"));
    CHECK_INT(spec->tasks[ROLE_WORKER].gpus, 2);
    CHECK_INT(spec->tasks[ROLE_WORKER].gpu_share, 0);
    arena_free(arena);
}

TEST(spec_examples_parse_and_come_back)
{
    CHECK(spec_example_count() >= 4);
    for (int i = 0; i < spec_example_count(); i++) {
        const struct spec_example *example = spec_example_at(i);
        struct arena *arena = arena_new();
        struct str first = {0}, second = {0};
        const struct spec *spec = parse(arena, example->json);
        CHECK_TEXT(spec->name, example->name);
        CHECK(spec_example_find(example->name) == example);
        spec_to_json(spec, &first);
        spec_to_json(parse(arena, str_text(&first)), &second);
        CHECK_TEXT(str_text(&first), str_text(&second));
        str_release(&first);
        str_release(&second);
        arena_free(arena);
    }
    CHECK(!spec_example_find("nonesuch"));
}

TEST(spec_example_is_overridden_field_by_field)
{
    struct arena *arena = arena_new();
    const struct spec *spec = parse(
        arena,
        "{\"example\": \"mnist-cnn\", \"seed\": 7, \"data\": {\"batch_size\": 50},"
        " \"train\": {\"epochs\": 2, \"optimizer\": {\"name\": \"SGD\", \"momentum\": 0.5}}}");
    CHECK_TEXT(spec->name, "mnist-cnn");
    CHECK_INT(spec->seed, 7);
    CHECK_TEXT(spec->data.dataset, "mnist");
    CHECK_INT(spec->data.batch_size, 50);
    CHECK_INT(spec->train.epochs, 2);
    CHECK_INT(spec->train.steps, 0);
    CHECK(optimizer_rate(spec->train.optimizer) == 0.01);
    CHECK(spec->layers_count > 5);
    spec = parse(
        arena,
        "{\"example\": \"mnist-cnn\", \"train\": {\"optimizer\": {\"learning_rate\": 0.5}}}");
    CHECK(config_is(spec->train.optimizer, "Adam"));
    CHECK(optimizer_rate(spec->train.optimizer) == 0.5);
    arena_free(arena);
}

static const struct bad_spec bad_specs[] = {
    /* syntax */
    {"", INVALID, "", "not JSON: line 1"},
    {"{", INVALID, "", "not JSON: line 1"},
    {"{\"name\": \"a\",}", INVALID, "", "column"},
    {"[]", INVALID, "", "a list of 0, allowed: an object"},
    {"{\"seed\": 1, \"seed\": 2}", INVALID, "", "duplicate"},
    {"{\"name\": \"\xff\"}", INVALID, "", "unable to decode byte 0xff"},
    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", EXHAUSTED, "", "deeper than 32"},
    {"{\"model\": {}} x", INVALID, "", "end of file expected"},
    /* the top */
    {"{}", INVALID, "/model", "model is missing"},
    {"{" DENSE "}", INVALID, "/data", "data is missing"},
    {WITH("\"nmae\": \"x\""), INVALID, "/nmae", "did you mean \"name\""},
    {WITH("\"zzzzz\": 1"), INVALID, "/zzzzz", "unknown field \"zzzzz\"; allowed: version"},
    {WITH("\"a/b~c\": 1"), INVALID, "/a~1b~0c", "unknown field"},
    {WITH("\"version\": 2"), INVALID, "/version", "from 1 to 1"},
    {WITH("\"name\": \"a b\""), INVALID, "/name", "name is \"a b\""},
    {WITH("\"name\": \"\""), INVALID, "/name", "1 to 128"},
    {WITH("\"name\": \"..\""), INVALID, "/name", "\"..\""},
    {WITH("\"name\": 7"), INVALID, "/name", "name is 7"},
    {WITH("\"project\": \"a/b\""), INVALID, "/project", "a/b"},
    {WITH("\"queue\": []"), INVALID, "/queue", "a list of 0"},
    {WITH("\"notes\": {}"), INVALID, "/notes", "notes is an object, allowed: text"},
    {WITH("\"notes\": \"a\\u0007\""), INVALID, "/notes", "control character 0x07 at byte 1"},
    {WITH("\"priority\": 101"), INVALID, "/priority",
     "priority is 101, allowed: an integer from 0 to 100"},
    {WITH("\"priority\": 1.5"), INVALID, "/priority", "1.5"},
    {WITH("\"seed\": -1"), INVALID, "/seed", "-1"},
    {WITH("\"seed\": 9007199254740992"), INVALID, "/seed", "from 0 to 9007199254740991"},
    {WITH("\"after\": 3"), INVALID, "/after", "after is 3"},
    {WITH("\"after\": [3, 0]"), INVALID, "/after/1", "a job is 0"},
    {WITH("\"after\": [\"a b\"]"), INVALID, "/after/0", "a job is \"a b\""},
    {WITH("\"tags\": \"x\""), INVALID, "/tags", "tags is \"x\""},
    {WITH("\"tags\": [\"x\", \"\"]"), INVALID, "/tags/1", "a tag is \"\""},
    {WITH("\"array\": {}"), INVALID, "/array", "a server makes"},
    /* examples */
    {"{\"example\": 3}", INVALID, "/example", "example is 3"},
    {"{\"example\": \"mnist-cn\"}", NOT_FOUND, "/example", "did you mean \"mnist-cnn\""},
    {"{\"example\": \"mnist-cnn\", \"command\": []}", INVALID, "/command",
     "one of example and command"},
    {"{\"example\": \"mnist-cnn\", \"train\": {\"stepz\": 5}}", INVALID, "/train/stepz",
     "did you mean \"steps\""},
    /* the model */
    {"{\"model\": [], " DATA "}", INVALID, "/model", "a list of 0, allowed: an object"},
    {"{\"model\": {}, " DATA "}", INVALID, "/model/layers", "layers is missing"},
    {"{\"model\": {\"layers\": {}}, " DATA "}", INVALID, "/model/layers",
     "an object, allowed: a list"},
    {"{\"model\": {\"layers\": []}, " DATA "}", INVALID, "/model/layers", "1 to 1000 layers"},
    {"{\"model\": {\"graph\": \"x\"}, " DATA "}", UNIMPLEMENTED, "/model/graph",
     "\"layers\" or \"keras\""},
    {"{\"model\": {\"layers\": [7]}, " DATA "}", INVALID, "/model/layers/0", "layer 0 is 7"},
    {LAYER("\"units\": 3"), INVALID, "/model/layers/1/layer", "layer is missing"},
    {LAYER("\"layer\": 5"), INVALID, "/model/layers/1/layer", "layer is 5"},
    {LAYER("\"layer\": \"Desne\""), INVALID, "/model/layers/1/layer", "did you mean \"Dense\""},
    {LAYER("\"layer\": \"Convolution\""), INVALID, "/model/layers/1/layer",
     "unknown layer \"Convolution\""},
    {LAYER("\"layer\": \"Dense\""), INVALID, "/model/layers/1/units", "units is missing"},
    {LAYER("\"layer\": \"Dense\", \"units\": 0"), INVALID, "/model/layers/1/units",
     "units is 0"},
    {LAYER("\"layer\": \"Dense\", \"units\": \"10\""), INVALID, "/model/layers/1/units",
     "units is \"10\""},
    {LAYER("\"layer\": \"Dense\", \"filters\": 10"), INVALID, "/model/layers/1/filters",
     "unknown field"},
    {LAYER("\"layer\": \"Dense\", \"unit\": 10"), INVALID, "/model/layers/1/unit",
     "did you mean \"units\""},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"activation\": \"rleu\""), INVALID,
     "/model/layers/1/activation", "did you mean \"relu\""},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"activation\": 3"), INVALID,
     "/model/layers/1/activation", "3"},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"use_bias\": 1"), INVALID,
     "/model/layers/1/use_bias", "use_bias is 1, allowed: true or false"},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"kernel_regularizer\": \"l3\""), INVALID,
     "/model/layers/1/kernel_regularizer", "unknown regulariser \"l3\""},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"inputs\": [\"dense\"]"), INVALID,
     "/model/layers/1/inputs/0", "no layer before this one is named \"dense\""},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"inputs\": [\"flaten\"]"), INVALID,
     "/model/layers/1/inputs/0", "did you mean \"flatten\""},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"inputs\": []"), INVALID,
     "/model/layers/1/inputs", "a list of 0, allowed: 1 to"},
    {LAYER("\"layer\": \"InputLayer\", \"inputs\": \"flatten\""), INVALID,
     "/model/layers/1/inputs", "from the data"},
    {LAYER("\"reuse\": \"dense\""), INVALID, "/model/layers/1/reuse", "no layer before"},
    {LAYER("\"reuse\": \"flatten\", \"units\": 1"), INVALID, "/model/layers/1/units",
     "unknown field"},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"kernel_initializer\": \"glorot\""), INVALID,
     "/model/layers/1/kernel_initializer", "unknown initialiser \"glorot\""},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"kernel_initializer\": {\"value\": 1}"),
     INVALID, "/model/layers/1/kernel_initializer/name", "name is missing"},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"bias_initializer\": {\"name\": \"zeros\", "
           "\"value\": 1}"),
     INVALID, "/model/layers/1/bias_initializer/value", "unknown field"},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"bias_initializer\": {\"name\": "
           "\"RandomNormal\", \"stddev\": -1}"),
     INVALID, "/model/layers/1/bias_initializer/stddev", "-1"},
    {"{\"model\": {\"layers\": [{\"layer\": \"Flatten\", \"name\": \"a\"}, {\"layer\": "
     "\"Flatten\", "
     "\"name\": \"a\"}]}, " DATA "}",
     INVALID, "/model/layers/1/name", "another layer is named \"a\""},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"name\": \"a/b\""), INVALID,
     "/model/layers/1/name", "a/b"},
    {LAYER("\"layer\": \"Dense\", \"units\": 9, \"trainable\": 1"), INVALID,
     "/model/layers/1/trainable", "true or false"},
    {LAYER("\"layer\": \"Conv2D\", \"filters\": 8"), INVALID, "/model/layers/1/kernel_size",
     "missing"},
    {LAYER("\"layer\": \"Conv2D\", \"kernel_size\": 8"), INVALID, "/model/layers/1/filters",
     "missing"},
    {LAYER("\"layer\": \"Conv2D\", \"filters\": 8, \"kernel_size\": [3]"), INVALID,
     "/model/layers/1/kernel_size",
     "a list of 1, allowed: an integer from 1 to 10000, or a list of 2 of them"},
    {LAYER("\"layer\": \"Conv2D\", \"filters\": 8, \"kernel_size\": [3, 0]"), INVALID,
     "/model/layers/1/kernel_size", "a list of 2"},
    {LAYER("\"layer\": \"Conv2D\", \"filters\": 8, \"kernel_size\": 3, \"padding\": \"full\""),
     INVALID, "/model/layers/1/padding", "allowed: valid, same"},
    {LAYER("\"layer\": \"Conv2D\", \"filters\": 8, \"kernel_size\": 3, \"data_format\": "
           "\"channels_first\""),
     INVALID, "/model/layers/1/data_format", "channels_first"},
    {LAYER("\"layer\": \"Conv2D\", \"filters\": 8, \"kernel_size\": 3, \"groups\": 3"), INVALID,
     "/model/layers/1", "filters is 8 and groups is 3"},
    {LAYER("\"layer\": \"MaxPooling2D\", \"pool_size\": 0"), INVALID,
     "/model/layers/1/pool_size", "pool_size is 0"},
    {LAYER("\"layer\": \"Dropout\""), INVALID, "/model/layers/1/rate", "rate is missing"},
    {LAYER("\"layer\": \"Dropout\", \"rate\": 1"), INVALID, "/model/layers/1/rate",
     "from 0 to 0.99"},
    {LAYER("\"layer\": \"Activation\""), INVALID, "/model/layers/1/activation", "missing"},
    /* data and train */
    {"{" DENSE ", \"data\": {}}", INVALID, "/data/dataset", "dataset is missing"},
    {"{" DENSE ", \"data\": {\"dataset\": \"../x\"}}", INVALID, "/data/dataset", "../x"},
    {"{" DENSE ", \"data\": {\"dataset\": \"m\", \"batch_size\": 0}}", INVALID,
     "/data/batch_size", "0"},
    {"{" DENSE ", \"data\": {\"dataset\": \"m\", \"shuffle\": -2}}", INVALID, "/data/shuffle",
     "-2"},
    {"{" DENSE ", \"data\": {\"dataset\": \"m\", \"shuffle\": \"yes\"}}", INVALID,
     "/data/shuffle", "true, false"},
    {"{" DENSE ", \"data\": {\"dataset\": \"m\", \"validation\": 1.5}}", INVALID,
     "/data/validation", "1.5"},
    {DATA_WITH("\"validation\": 1.0"), INVALID, "/data/validation", "above 0 and below 1"},
    {DATA_WITH("\"target\": 3"), INVALID, "/data/target", "3"},
    {DATA_WITH("\"features\": []"), INVALID, "/data/features", "a list of names"},
    {DATA_WITH("\"features\": [\"a\", \"a\"]"), INVALID, "/data/features", "each once"},
    {DATA_WITH("\"skip_damaged\": -2"), INVALID, "/data/skip_damaged", "-2"},
    {DATA_WITH("\"skip_damaged\": \"yes\""), INVALID, "/data/skip_damaged", "true, false"},
    {DATA_WITH("\"columns\": [1]"), INVALID, "/data/columns", "a list of 1"},
    {DATA_WITH("\"columns\": {\"a/b\": 3}"), INVALID, "/data/columns/a~1b", "a type"},
    {DATA_WITH("\"columns\": {\"a\": \"numerical\"}"), INVALID, "/data/columns/a",
     "did you mean \"numeric\""},
    {DATA_WITH("\"columns\": {\"a\": {\"shape\": [2, 0]}}"), INVALID, "/data/columns/a/shape",
     "dimensions from 1"},
    {DATA_WITH("\"columns\": {\"a\": {\"shape\": [9000000000, 9000000000]}}"), INVALID,
     "/data/columns/a/shape", "dimensions from 1"},
    {DATA_WITH("\"columns\": {\"a\": {\"default\": []}}"), INVALID, "/data/columns/a/default",
     "a number or a text"},
    {DATA_WITH("\"columns\": {\"a\": {\"sort\": 1}}"), INVALID, "/data/columns/a/sort", "sort"},
    {"{" DENSE ", \"data\": {\"dataset\": \"m\", \"batchsize\": 2}}", INVALID,
     "/data/batchsize", "did you mean \"batch_size\""},
    {TRAIN("\"loss\": 3"), INVALID, "/train/loss", "loss is 3, allowed: the name of a loss"},
    {TRAIN("\"loss\": {\"name\": \"SparseCategoricalCrossentropy\", \"from_logits\": 1}"),
     INVALID, "/train/loss/from_logits", "true or false"},
    {TRAIN("\"loss\": \"sparse_crossentropy\""), INVALID, "/train/loss", "unknown loss"},
    {TRAIN("\"metrics\": \"accuracy\""), INVALID, "/train/metrics", "a list of names"},
    {TRAIN("\"metrics\": [\"acuracy\"]"), INVALID, "/train/metrics/0",
     "unknown metric \"acuracy\""},
    {TRAIN("\"metrics\": [\"accuracy\", \"acc\"]"), INVALID, "/train/metrics/1",
     "is there already"},
    {TRAIN("\"weighted_metrics\": [\"acuracy\"]"), INVALID, "/train/weighted_metrics/0",
     "acuracy"},
    {TRAIN("\"weighted_metrics\": [\"acc\", \"acc\"]"), INVALID, "/train/weighted_metrics/1",
     "\"weighted_accuracy\" is there already"},
    {DATA_WITH("\"weight\": 1"), INVALID, "/data/weight", "1"},
    {TRAIN("\"metrics\": [1]"), INVALID, "/train/metrics/0", "a metric is 1"},
    {TRAIN("\"optimizer\": \"Adma\""), INVALID, "/train/optimizer", "did you mean \"Adam\""},
    {TRAIN("\"optimizer\": 3"), INVALID, "/train/optimizer", "optimizer is 3"},
    {TRAIN("\"optimizer\": {}"), INVALID, "/train/optimizer/name", "name is missing"},
    {TRAIN("\"optimizer\": {\"name\": \"SGD\", \"beta_1\": 0.9}"), INVALID,
     "/train/optimizer/beta_1", "unknown field"},
    {TRAIN("\"optimizer\": {\"name\": \"Adam\", \"lr\": 0.9}"), INVALID, "/train/optimizer/lr",
     "unknown field"},
    {TRAIN("\"optimizer\": {\"name\": \"Adam\", \"learning_rate\": -1}"), INVALID,
     "/train/optimizer/learning_rate", "learning_rate is -1"},
    {TRAIN("\"steps\": 0"), INVALID, "/train/steps", "steps is 0"},
    {TRAIN("\"steps\": \"many\""), INVALID, "/train/steps",
     "steps is \"many\", allowed: an integer"},
    {TRAIN("\"steps\": 1, \"epochs\": 1"), INVALID, "/train/epochs", "one of the two"},
    {TRAIN("\"eval_every\": -1"), INVALID, "/train/eval_every", "-1"},
    {TRAIN("\"precision\": \"float16\""), UNIMPLEMENTED, "/train/precision",
     "float32 or bfloat16"},
    {TRAIN("\"precision\": \"bf16\""), INVALID, "/train/precision", "bfloat16"},
    {TRAIN("\"schedule\": {}"), INVALID, "/train/schedule/name", "name"},
    {TRAIN("\"schedule\": {\"name\": \"CosineDecay\", \"initial_learning_rate\": -1, "
           "\"decay_steps\": 5}"),
     INVALID, "/train/schedule/initial_learning_rate", "-1"},
    {TRAIN("\"clip\": 0"), INVALID, "/train/clip", "clip is 0"},
    {TRAIN("\"clip\": \"much\""), INVALID, "/train/clip", "\"much\""},
    {TRAIN("\"clip\": {\"norms\": 1}"), INVALID, "/train/clip/norms", "did you mean \"norm\""},
    {TRAIN("\"clip\": {\"norm\": 1, \"value\": 1}"), INVALID, "/train/clip", "one of norm"},
    {TRAIN("\"clip\": {\"norm\": -1}"), INVALID, "/train/clip/norm", "norm is -1"},
    {TRAIN("\"clip\": 1, \"optimizer\": {\"name\": \"SGD\", \"global_clipnorm\": 2}"), INVALID,
     "/train/clip", "one of the two"},
    {TRAIN("\"moving_average\": 2"), INVALID, "/train/moving_average", "is 2"},
    {TRAIN("\"moving_average\": {\"overwrite_every\": 0}"), INVALID,
     "/train/moving_average/overwrite_every", "is 0"},
    {TRAIN("\"init\": {}"), INVALID, "/train/init", "neither job nor file"},
    {TRAIN("\"init\": \"a.h5\""), INVALID, "/train/init", "\"a.h5\""},
    {TRAIN("\"init\": {\"job\": 3, \"file\": \"x\"}"), INVALID, "/train/init", "both job and"},
    {TRAIN("\"init\": {\"job\": 0}"), INVALID, "/train/init/job", "job is 0"},
    {TRAIN("\"init\": {\"file\": \"\"}"), INVALID, "/train/init/file", "empty"},
    {TRAIN("\"init\": {\"file\": \"x\", \"step\": 5}"), INVALID, "/train/init/step",
     "with job"},
    {TRAIN("\"init\": {\"job\": 3, \"strict\": 1}"), INVALID, "/train/init/strict", "1"},
    /* where it runs */
    {WITH("\"tasks\": {\"workers\": 1}"), INVALID, "/tasks/workers", "did you mean \"worker\""},
    {WITH("\"tasks\": {\"worker\": 0}"), INVALID, "/tasks/worker", "at least 1"},
    {WITH("\"tasks\": {\"worker\": 2}"), UNIMPLEMENTED, "/tasks/worker", "one worker"},
    {WITH("\"tasks\": {\"worker\": \"2\"}"), INVALID, "/tasks/worker", "worker is \"2\""},
    {WITH("\"tasks\": {\"ps\": 1}"), UNIMPLEMENTED, "/tasks/ps", "role ps"},
    {WITH("\"tasks\": {\"worker\": 257}"), INVALID, "/tasks/worker", "from 0 to 256"},
    {WITH("\"tasks\": {\"worker\": 256, \"ps\": 1}"), INVALID, "/tasks", "257 tasks"},
    {WITH("\"tasks\": {\"worker\": {\"cpu\": 1}}"), INVALID, "/tasks/worker/cpu",
     "did you mean \"cpus\""},
    {WITH("\"tasks\": {\"worker\": {\"cpus\": 0}}"), INVALID, "/tasks/worker/cpus",
     "from 0.001"},
    {WITH("\"tasks\": {\"worker\": {\"gpus\": 1.5}}"), INVALID, "/tasks/worker/gpus",
     "a part of one"},
    {WITH("\"tasks\": {\"worker\": {\"gpus\": -1}}"), INVALID, "/tasks/worker/gpus", "-1"},
    {WITH("\"placement\": {\"tasks\": \"sprd\"}"), INVALID, "/placement/tasks", "spread"},
    {WITH("\"tasks\": {\"worker\": {\"node_labels\": {\"a\": 1}}}"), INVALID,
     "/tasks/worker/node_labels/a", "text"},
    {WITH("\"strategy\": {\"mode\": \"async\"}"), UNIMPLEMENTED, "/strategy/mode", "async"},
    {WITH("\"strategy\": {\"mode\": \"snyc\"}"), INVALID, "/strategy/mode",
     "did you mean \"sync\""},
    {WITH("\"strategy\": {\"backup_workers\": 1}"), UNIMPLEMENTED, "/strategy/backup_workers",
     "one worker"},
    {WITH("\"placement\": {\"pins\": {\"dense*\": \"/gpu:0\"}}"), UNIMPLEMENTED,
     "/placement/pins", "one device"},
    {WITH("\"checkpoint\": {\"every\": 1}"), INVALID, "/checkpoint/every", "unknown field"},
    {WITH("\"checkpoint\": {\"keep_latest\": 0}"), INVALID, "/checkpoint/keep_latest", "0"},
    {WITH("\"checkpoint\": {\"keep_best\": 1}"), INVALID, "/checkpoint",
     "/train/eval_every is 0"},
    {WITH("\"checkpoint\": {\"keep_best\": -1}"), INVALID, "/checkpoint/keep_best", "-1"},
    {WITH("\"checkpoint\": {\"keep_best\": {\"metric\": \"loss\"}}"), INVALID,
     "/checkpoint/keep_best/metric", "val_loss"},
    {WITH("\"checkpoint\": {\"keep_best\": {\"count\": 0}}"), INVALID,
     "/checkpoint/keep_best/count", "0"},
    {WITH("\"restart\": {\"max\": -1}"), INVALID, "/restart/max", "-1"},
    {WITH("\"restart\": {\"on\": \"crash\"}"), INVALID, "/restart/on", "a list"},
    {WITH("\"restart\": {\"on\": [\"crush\"]}"), INVALID, "/restart/on/0",
     "did you mean \"crash\""},
    {WITH("\"restart\": {\"on\": []}"), INVALID, "/restart/on", "no fault is left"},
    {WITH("\"restart\": {\"on\": [\"lost\"], \"never_on\": [\"lost\"]}"), INVALID,
     "/restart/never_on", "lost is in on, too"},
    {WITH("\"restart\": {\"never_on\": [3]}"), INVALID, "/restart/never_on/0", "\"3\""},
    {WITH("\"restart\": {\"exclude_bad_nodes\": 0}"), INVALID, "/restart/exclude_bad_nodes",
     "is 0"},
    {WITH("\"stop\": {\"max_second\": 1}"), INVALID, "/stop/max_second",
     "did you mean \"max_seconds\""},
    {WITH("\"stop\": {\"target\": {\"metric\": \"val_loss\"}}"), INVALID, "/stop/target",
     "neither"},
    {WITH("\"stop\": {\"early\": {}}"), INVALID, "/stop/early/patience", "patience is missing"},
    {WITH("\"stop\": {\"early\": {\"patience\": 2}}"), INVALID, "/stop/early",
     "at least 1 step"},
    {WITH("\"stop\": {\"early\": {\"patience\": -2}}"), INVALID, "/stop/early/patience", "-2"},
    {WITH("\"stop\": {\"early\": {\"patience\": 2, \"min_delta\": -1}}"), INVALID,
     "/stop/early/min_delta", "-1"},
    {WITH("\"stop\": {\"early\": {\"patience\": 2, \"mode\": \"up\"}}"), INVALID,
     "/stop/early/mode", "min, max"},
    {WITH("\"stop\": {\"early\": {\"patience\": 2, \"metric\": \"accuracy\"}}"), INVALID,
     "/stop/early/metric", "val_accuracy"},
    {WITH("\"train\": {\"metrics\": []}, \"stop\": {\"target\": {\"metric\": \"val_accuracy\", "
          "\"min\": 1}}"),
     INVALID, "/stop/target/metric", "allowed: val_loss"},
    {WITH("\"trace\": {\"every_steps\": -1}"), INVALID, "/trace/every_steps", "-1"},
    {BLOCKS(RESIDUAL, "{\"block\": \"residul\", \"units\": 3}"), INVALID,
     "/model/layers/0/block", "\"residual\"?"},
    {BLOCKS(RESIDUAL, "{\"block\": \"residual\"}"), INVALID, "/model/layers/0", "\"units\""},
    {BLOCKS(RESIDUAL, "{\"block\": \"residual\", \"units\": 3, \"unit\": 4}"), INVALID,
     "/model/layers/0/unit", "units"},
    {BLOCKS(RESIDUAL, "{\"block\": \"residual\", \"units\": 3}"), INVALID,
     "/model/blocks/residual/layers/2/inputs/0", "InputLayer"},
    {BLOCKS(RESIDUAL, "{\"layer\": \"InputLayer\"}, {\"block\": \"residual\", \"units\": 3, "
                      "\"repeat\": 0}"),
     INVALID, "/model/layers/1/repeat", "1"},
    {BLOCKS("\"a\": {\"layers\": [{\"layer\": \"Dense\", \"units\": \"$n\"}]}",
            "{\"block\": \"a\"}"),
     INVALID, "/model/blocks/a/layers/0", "$n"},
    {BLOCKS("\"a\": {\"layers\": []}", "{\"block\": \"a\"}"), INVALID, "/model/blocks/a/layers",
     "a list of 0"},
    {BLOCKS("\"a\": {\"layers\": [{\"block\": \"a\"}]}", "{\"block\": \"a\"}"), INVALID,
     "/model/blocks/a/layers/0", "depth of 4"},
    {BLOCKS("\"a\": {\"layers\": [{\"layer\": \"ReLU\"}, {\"layer\": \"ReLU\"}]}",
            "{\"block\": \"a\", \"repeat\": 501}"),
     INVALID, "/model/blocks/a/layers/0", "1000"},
    {BLOCKS("\"a\": {\"layers\": [{\"layer\": \"ReLU\"}]}",
            "{\"block\": \"a\", \"name\": \"x\"}, {\"block\": \"a\", \"name\": \"x\"}"),
     INVALID, "/model/layers/1", "already"},
    {BLOCKS("\"a b\": {\"layers\": [{\"layer\": \"ReLU\"}]}", "{\"block\": \"a b\"}"), INVALID,
     "/model/blocks", "\"a b\""},
    {"{\"model\": {\"layers\": [{\"block\": \"a\"}]}, " DATA "}", INVALID,
     "/model/layers/0/block", "no \"blocks\""},
};

TEST(spec_refuses_with_pointer_and_reason)
{
    for (int i = 0; i < ARRAY_LEN(bad_specs); i++)
        check_bad_spec(&bad_specs[i]);
}

/* Every prefix of a good spec is refused, none is read beyond its end. */
TEST(spec_survives_being_cut)
{
    const struct spec_example *example = spec_example_at(0);
    for (size_t size = 0; size + 2 < example->size; size++) {
        char *copy = alloc_bytes(size);
        memcpy(copy, example->json, size);
        struct arena *arena = arena_new();
        struct error err;
        CHECK(!spec_parse(arena, copy, size, &err));
        arena_free(arena);
        free(copy);
    }
}

TEST(spec_refuses_a_huge_text)
{
    size_t size = (1 << 20) + 1;
    char *text = alloc_bytes(size);
    memset(text, ' ', size);
    struct arena *arena = arena_new();
    struct error err;
    CHECK_FAILS(spec_parse(arena, text, size, &err), &err, EXHAUSTED);
    memset(text, ',', 20000);
    CHECK_FAILS(spec_parse(arena, text, 20000, &err), &err, EXHAUSTED);
    arena_free(arena);
    free(text);
}

/* The section for data reads back as it was written. */
TEST(spec_keeps_data)
{
    struct arena *arena = arena_new();
    struct error err;
    const char text[] =
        DATA_WITH("\"format\": \"csv\", \"validation\": 0.125, \"target\": \"price\", "
                  "\"features\": [\"a\", \"b c\"], \"weight\": \"w\", \"skip_damaged\": true, "
                  "\"columns\": {\"a\": "
                  "\"categorical\", \"b c\": {\"shape\": [2, 3], \"default\": -1.5, \"scale\": "
                  "0.25, \"alone\": true}, \"d\": {\"default\": \"none\", \"shape\": []}}");
    const struct spec *spec = spec_parse(arena, text, strlen(text), &err);
    for (int turn = 0; turn < 2; turn++) {
        CHECK_OK(spec, &err);
        const struct spec_data *data = &spec->data;
        CHECK_TEXT(data->format, "csv");
        CHECK(data->validation_fraction == 0.125);
        CHECK_TEXT(data->target, "price");
        CHECK_INT(data->features_count, 2);
        CHECK_TEXT(data->features[1], "b c");
        CHECK_INT(data->skip_damaged, -1);
        CHECK_TEXT(data->weight, "w");
        CHECK_INT(data->columns_count, 3);
        CHECK_INT(data->columns[0].type, COLUMN_CATEGORICAL);
        CHECK_INT(data->columns[0].rank, -1);
        CHECK_INT(data->columns[1].rank, 2);
        CHECK_INT(data->columns[1].dims[1], 3);
        CHECK_TEXT(data->columns[1].initial, "-1.5");
        CHECK(data->columns[1].has_scale && data->columns[1].scale == 0.25);
        CHECK(data->columns[1].alone && !data->columns[2].alone);
        CHECK_TEXT(data->columns[2].initial, "none");
        CHECK_INT(data->columns[2].rank, 0);
        struct str json = {0};
        spec_to_json(spec, &json);
        spec = spec_parse(arena, json.data, json.size, &err);
        str_release(&json);
    }
    arena_free(arena);
}

/* --- a program in place of a model --- */

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(spec_takes_a_patch)
{
    struct arena *arena = arena_new();
    struct error err;
    struct str text = {0};
    spec_to_json(
        parse(arena, WITH("\"train\": {\"epochs\": 3}, \"priority\": 60, \"seed\": 5")), &text);
    const char *patch = "{\"seed\": 6, \"priority\": null, \"train\": {\"steps\": 9, "
                        "\"optimizer\": {\"name\": \"SGD\", \"momentum\": 0.5}}}";
    const char *patched = spec_patch(arena, str_text(&text), patch, strlen(patch), &err);
    CHECK(patched);
    const struct spec *spec = parse(arena, patched);
    CHECK_INT(spec->seed, 6);
    CHECK_INT(spec->priority, 50);
    CHECK_INT(spec->train.steps, 9);
    CHECK_INT(spec->train.epochs, 0);
    CHECK(config_is(spec->train.optimizer, "SGD"));
    CHECK_INT(spec->layers_count, 1);
    CHECK(!spec_patch(arena, str_text(&text), "[]", 2, &err));
    CHECK(!spec_patch(arena, str_text(&text), "{", 1, &err));
    str_release(&text);
    arena_free(arena);
}

TEST(spec_of_a_command)
{
    struct arena *arena = arena_new();
    struct str text = {0};
    const struct spec *spec = parse(
        arena, "{\"command\": [\"python3\", \"/x/train.py\", \"--lr\", \"0.1\\n\"], \"env\": "
               "{\"A\": \"1\", \"B_2\": \"x y\"}, \"secrets\": {\"KEY\": \"file\", "
               "\"HF_TOKEN\": \"env\"}, \"files\": {\"a/b.txt\": \"" HASH
               "\"}, \"tasks\": {\"worker\": 3, \"ps\": {\"replicas\": 2, \"cpus\": 0.5}}, "
               "\"stop\": {\"max_seconds\": 60}, \"restart\": {\"max\": 2, \"on\": "
               "[\"user\", \"crash\"], \"exclude_bad_nodes\": true}}");
    CHECK_INT(spec->command.words_count, 4);
    CHECK_TEXT(spec->command.words[3], "0.1\n");
    CHECK_TEXT(spec->name, "train.py");
    CHECK_INT(spec->command.env_count, 2);
    CHECK_TEXT(spec->command.env[1].name, "B_2");
    CHECK_TEXT(spec->command.env[1].value, "x y");
    CHECK_INT(spec->command.secrets_count, 2);
    CHECK_TEXT(spec->command.secrets[0].name, "KEY");
    CHECK(!spec->command.secrets[0].in_env);
    CHECK_TEXT(spec->command.secrets[1].name, "HF_TOKEN");
    CHECK(spec->command.secrets[1].in_env);
    CHECK_TEXT(spec->command.files[0].path, "a/b.txt");
    CHECK_TEXT(spec->command.files[0].sha256, HASH);
    CHECK_INT(spec->tasks[ROLE_WORKER].replicas, 3);
    CHECK_INT(spec->tasks[ROLE_PS].replicas, 2);
    CHECK_INT(spec->tasks[ROLE_PS].cpu_millis, 500);
    CHECK_INT(spec->stop.max_seconds, 60);
    CHECK_INT(spec->restart_max, 2);
    CHECK_INT(spec->restart_on, 1 << 3 | 1 << 4); /* EXIT_USER, EXIT_CRASH */
    CHECK_INT(spec->restart_bad, 1);
    CHECK_INT(spec->layers_count, 0);

    spec_to_json(spec, &text);
    const struct spec *again = parse(arena, str_text(&text));
    struct str second = {0};
    spec_to_json(again, &second);
    CHECK_TEXT(str_text(&second), str_text(&text));
    str_release(&text);
    str_release(&second);
    CHECK_TEXT(parse(arena, "{\"command\": [\"/bin/my prog\"]}")->name, "my_prog");
    CHECK_TEXT(parse(arena, "{\"command\": [\"sh\", \"-c\", \"a.b\"]}")->name, "sh");
    CHECK_TEXT(parse(arena, "{\"command\": [\"x\"], \"workdir\": \"/w\"}")->command.workdir,
               "/w");
    arena_free(arena);
}

TEST(spec_of_a_command_refuses)
{
    static const struct {
        const char *text, *pointer, *says;
    } cases[] = {
        {"{\"command\": []}", "/command", "1 to 1000 words"},
        {"{\"command\": \"ls\"}", "/command", "\"ls\""},
        {"{\"command\": [\"ls\", 5]}", "/command/1", "a word is 5"},
        {"{\"command\": [\"\"]}", "/command/0", "not empty"},
        {"{\"command\": [\"a\"], \"env\": {\"1A\": \"x\"}}", "/env/1A", "no digit first"},
        {"{\"command\": [\"a\"], \"env\": {\"A=B\": \"x\"}}", "/env/A=B", "cannot name"},
        {"{\"command\": [\"a\"], \"env\": {\"A\": 1}}", "/env/A", "A is 1"},
        {"{\"command\": [\"a\"], \"env\": {\"TRAINYARD_OUT\": \"x\"}}", "/env/TRAINYARD_OUT",
         "the platform's own"},
        {"{\"command\": [\"a\"], \"secrets\": {\"A-B\": \"env\"}}", "/secrets/A-B",
         "no digit first"},
        {"{\"command\": [\"a\"], \"secrets\": {\"A\": \"x\"}}", "/secrets/A", "$A_FILE"},
        {"{\"command\": [\"a\"], \"secrets\": {\"A\": 5}}", "/secrets/A", "A is 5"},
        {"{\"command\": [\"a\"], \"secrets\": [\"A\"]}", "/secrets", "secrets is a list"},
        {"{\"command\": [\"a\"], \"env\": {\"A\": \"x\"}, \"secrets\": {\"A\": \"env\"}}",
         "/secrets/A", "a variable of env already"},
        {"{\"command\": [\"a\"], \"files\": {\"../x\": \"" HASH "\"}}", "/files/..~1x",
         "cannot name a file"},
        {"{\"command\": [\"a\"], \"files\": {\"x\": \"ABC\"}}", "/files/x", "64 digits"},
        {"{\"command\": [\"a\"], \"workdir\": \"here\"}", "/workdir", "whole path"},
        {"{\"command\": [\"a\"], \"workdir\": \"/w\", \"files\": {\"x\": \"" HASH "\"}}",
         "/workdir", "one of workdir"},
        {"{\"command\": [\"a\"], \"model\": {\"layers\": []}}", "/model", "belongs to a model"},
        {"{\"command\": [\"a\"], \"stop\": {\"max_steps\": 5}}", "/stop/max_steps",
         "unknown field"},
        {"{\"command\": [\"a\"], \"tasks\": {\"worker\": 0}}", "/tasks/worker", "at least 1"},
        {WITH("\"env\": {\"A\": \"b\"}"), "/env", "belongs to a \"command\""},
        {WITH("\"secrets\": {\"A\": \"env\"}"), "/secrets", "belongs to a \"command\""},
    };
    struct arena *arena = arena_new();
    for (int i = 0; i < ARRAY_LEN(cases); i++) {
        struct error err;
        CHECK(!spec_parse(arena, cases[i].text, strlen(cases[i].text), &err));
        CHECK_INT(err.code, INVALID);
        CHECK_TEXT(err.pointer, cases[i].pointer);
        if (!strstr(err.text, cases[i].says))
            CHECK_STOP("%s: %s", cases[i].text, err.text);
    }
    const char *program = "{\"command\": [\"a\"]}";
    struct error err;
    CHECK(!spec_parse_training(arena, program, strlen(program), &err));
    CHECK_TEXT(err.pointer, "/command");
    arena_free(arena);
}
