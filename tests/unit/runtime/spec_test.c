/* spec_test.c - job specs: what is taken, and what is filled in. */

#include "base/arena.h"
#include "base/str.h"
#include "runtime/model/optimizer.h"
#include "runtime/spec/config.h"
#include "tests/unit/runtime/specs.h"

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

/* As programs write them that have no integers. */
TEST(spec_takes_whole_numbers_with_a_point)
{
    struct error err;
    struct arena *arena = arena_new();
    CHECK_INT(parse(arena, "{\"command\": [\"true\"], \"priority\": 20.0}")->priority, 20);
    CHECK_INT(parse(arena, "{\"command\": [\"true\"], \"priority\": 2e1}")->priority, 20);
    static const char *const wrong[] = {"20.5", "1e300", "-0.1", "100.5", "101.0"};
    for (int i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *text =
            arena_printf(arena, "{\"command\": [\"true\"], \"priority\": %s}", wrong[i]);
        CHECK(!spec_parse(arena, text, strlen(text), &err));
        CHECK_TEXT(err.pointer, "/priority");
    }
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
        " \"restart\": {\"max\": 0}, \"stop\": {\"max_steps\": 8, \"max_seconds\": 7, "
        "\"stall_seconds\": 9,"
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

TEST(spec_says_how_workers_train_together)
{
    static const struct {
        const char *strategy;
        enum spec_mode mode;
        int backup, compress;
    } rows[] = {
        {"{}", MODE_SYNC, 0, F32},
        {"{\"mode\": \"async\", \"compress\": \"float16\"}", MODE_ASYNC, 0, F16},
        {"{\"backup_workers\": 2, \"compress\": \"bfloat16\"}", MODE_SYNC, 2, BF16},
    };
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *arena = arena_new();
        struct str text = {0};
        const struct spec *spec = parse(
            arena,
            arena_printf(arena, WITH("\"tasks\": {\"ps\": 1, \"worker\": 3}, \"strategy\": %s"),
                         rows[i].strategy));
        for (int round = 0; round < 2; round++) { /* read, and read as it was written */
            CHECK_INT(spec->strategy.mode, rows[i].mode);
            CHECK_INT(spec->strategy.backup, rows[i].backup);
            CHECK_INT(spec->strategy.compress, rows[i].compress);
            str_clear(&text);
            spec_to_json(spec, &text);
            spec = parse(arena, str_text(&text));
        }
        str_release(&text);
        arena_free(arena);
    }
}

TEST(spec_pins_layers_by_their_names)
{
    static const struct {
        const char *pattern, *name;
        bool matches;
    } rows[] = {
        {"dense", "dense", true}, {"dense", "dense_1", false},   {"dense*", "dense", true},
        {"*", "", true},          {"d?nse*1", "dense_11", true}, {"d?nse*1", "dense_12", false},
        {"*a*b", "aab", true},    {"*a*b", "aba", false},        {"?", "", false},
        {"a*c*e", "abcde", true}};
    for (int i = 0; i < ARRAY_LEN(rows); i++)
        CHECK(spec_pin_matches(rows[i].pattern, rows[i].name) == rows[i].matches);
    struct arena *arena = arena_new();
    struct str text = {0};
    const struct spec *spec =
        parse(arena, WITH("\"tasks\": {\"worker\": 3}, \"strategy\": {\"mode\": "
                          "\"pipeline\"}, \"placement\": {\"pins\": {\"dense\": "
                          "\"/job:worker/task:2\", \"*\": \"/job:worker/task:1/cpu:0\"}}"));
    for (int round = 0; round < 2; round++) { /* read, and read as it was written */
        CHECK_TEXT(spec_pin_of(spec, "dense"), "/job:worker/task:2");
        CHECK_TEXT(spec_pin_of(spec, "flatten"), "/job:worker/task:1/device:CPU:0");
        CHECK_INT(spec->strategy.mode, MODE_PIPELINE);
        CHECK_INT(spec->strategy.micro_batches, 8); /* the most that a batch of 32 has, to 12 */
        CHECK_INT(spec_step_examples(spec), 32);
        str_clear(&text);
        spec_to_json(spec, &text);
        spec = parse(arena, str_text(&text));
    }
    str_release(&text);
    arena_free(arena);
}
