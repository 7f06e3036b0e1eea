/* spec_json.c - a job spec back as JSON, with every default written out. */

#include "base/str.h"
#include "runtime/spec.h"

/* The shortest decimal that reads back as the same number. */
static void add_number(struct str *out, double value)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    str_add(out, text);
}

static void add_text(struct str *out, const char *text)
{
    str_add_json(out, text, strlen(text));
}

static void add_flag(struct str *out, const char *field, bool value)
{
    str_printf(out, ", \"%s\": %s", field, value ? "true" : "false");
}

static void add_real(struct str *out, const char *field, double value)
{
    str_printf(out, ", \"%s\": ", field);
    add_number(out, value);
}

static void add_initializer(struct str *out, const char *field,
                            const struct spec_initializer *init)
{
    static const char *const modes[] = {"fan_in", "fan_out", "fan_avg"};
    static const char *const distributions[] = {"uniform", "untruncated_normal",
                                                "truncated_normal"};
    str_printf(out, ", \"%s\": ", field);
    bool scaling = !strcmp(init->name, "variance_scaling");
    bool plain = init->distribution >= DISTRIBUTION_SCALED_UNIFORM && !scaling;
    if (plain || !strcmp(init->name, "zeros") || !strcmp(init->name, "ones")) {
        str_printf(out, "\"%s\"", init->name);
        return;
    }
    str_printf(out, "{\"name\": \"%s\"", init->name);
    if (scaling) {
        add_real(out, "scale", init->a);
        str_printf(out, ", \"mode\": \"%s\", \"distribution\": \"%s\"", modes[init->fan],
                   distributions[init->distribution - DISTRIBUTION_SCALED_UNIFORM]);
    } else if (init->distribution == DISTRIBUTION_CONSTANT) {
        add_real(out, "value", init->a);
    } else {
        bool uniform = init->distribution == DISTRIBUTION_UNIFORM;
        add_real(out, uniform ? "minval" : "mean", init->a);
        add_real(out, uniform ? "maxval" : "stddev", init->b);
    }
    str_add_char(out, '}');
}

static void add_window(struct str *out, const char *field, const struct spec_layer *layer)
{
    str_printf(out, ", \"%s\": [%lld, %lld], \"strides\": [%lld, %lld], \"padding\": \"%s\"",
               field, (long long)layer->size[0], (long long)layer->size[1],
               (long long)layer->strides[0], (long long)layer->strides[1],
               layer->same ? "same" : "valid");
}

static void add_weights(struct str *out, const struct spec_layer *layer)
{
    str_printf(out, ", \"activation\": \"%s\"", spec_activation_name(layer->activation));
    add_flag(out, "use_bias", layer->use_bias);
    add_initializer(out, "kernel_initializer", &layer->kernel_initializer);
    add_initializer(out, "bias_initializer", &layer->bias_initializer);
}

static void add_layer(struct str *out, const struct spec_layer *layer)
{
    str_printf(out, "{\"layer\": \"%s\", \"name\": ", spec_layer_class(layer->kind));
    add_text(out, layer->name);
    switch (layer->kind) {
    case LAYER_DENSE:
        str_printf(out, ", \"units\": %lld", (long long)layer->units);
        add_weights(out, layer);
        break;
    case LAYER_CONV2D:
        str_printf(out, ", \"filters\": %lld", (long long)layer->units);
        add_window(out, "kernel_size", layer);
        add_weights(out, layer);
        break;
    case LAYER_MAX_POOLING2D:
    case LAYER_AVERAGE_POOLING2D:
        add_window(out, "pool_size", layer);
        break;
    case LAYER_FLATTEN:
        break;
    case LAYER_DROPOUT:
        add_real(out, "rate", layer->rate);
        break;
    case LAYER_ACTIVATION:
        str_printf(out, ", \"activation\": \"%s\"", spec_activation_name(layer->activation));
        break;
    }
    str_add_char(out, '}');
}

static void add_train(struct str *out, const struct spec_train *train)
{
    const struct spec_optimizer *optimizer = &train->optimizer;
    str_printf(out,
               " \"train\": {\"loss\": \"sparse_categorical_crossentropy\",\n"
               "  \"optimizer\": {\"name\": \"%s\"",
               spec_optimizer_name(optimizer->kind));
    add_real(out, "learning_rate", optimizer->learning_rate);
    if (optimizer->kind == OPTIMIZER_SGD) {
        add_real(out, "momentum", optimizer->momentum);
        add_flag(out, "nesterov", optimizer->nesterov);
    } else {
        add_real(out, "beta_1", optimizer->beta_1);
        add_real(out, "beta_2", optimizer->beta_2);
        add_real(out, "epsilon", optimizer->epsilon);
    }
    str_printf(out,
               "},\n  \"metrics\": [%s], \"%s\": %lld, \"eval_every\": %lld, "
               "\"precision\": \"float32\"",
               train->accuracy ? "\"accuracy\"" : "", train->steps ? "steps" : "epochs",
               (long long)(train->steps ? train->steps : train->epochs),
               (long long)train->eval_every);
    add_flag(out, "check_numerics", train->check_numerics);
    str_add(out, "},\n");
}

static void add_tasks(struct str *out, const struct spec *spec)
{
    str_add(out, " \"tasks\": {");
    bool first = true;
    for (int role = 0; role < SPEC_ROLES; role++) {
        const struct spec_task *task = &spec->tasks[role];
        if (!task->replicas)
            continue;
        str_printf(out, "%s\"%s\": {\"replicas\": %d", first ? "" : ", ",
                   spec_role_name((enum spec_role)role), task->replicas);
        add_real(out, "cpus", (double)task->cpu_millis / 1000);
        str_printf(out, ", \"memory_bytes\": %lld, \"gpus\": %d, \"gpu_type\": ",
                   (long long)task->memory_bytes, task->gpus);
        add_text(out, task->gpu_type);
        str_printf(out, ", \"gpu_memory_bytes\": %lld, \"node_labels\": {",
                   (long long)task->gpu_memory_bytes);
        for (int i = 0; i < task->node_labels_count; i++) {
            str_add(out, i ? ", " : "");
            add_text(out, task->node_labels[i].name);
            str_add(out, ": ");
            add_text(out, task->node_labels[i].value);
        }
        str_add(out, "}}");
        first = false;
    }
    str_add(out, "},\n");
}

static void add_stop(struct str *out, const struct spec_stop *stop)
{
    str_printf(out, " \"stop\": {\"max_steps\": %lld, \"max_seconds\": %lld",
               (long long)stop->max_steps, (long long)stop->max_seconds);
    if (stop->target.metric) {
        str_printf(out, ", \"target\": {\"metric\": \"%s\"", stop->target.metric);
        add_real(out, stop->target.has_min ? "min" : "max",
                 stop->target.has_min ? stop->target.min : stop->target.max);
        str_add_char(out, '}');
    }
    str_add(out, "},\n");
}

static void add_identity(struct str *out, const struct spec *spec)
{
    str_add(out, "{\"version\": 1, \"name\": ");
    add_text(out, spec->name);
    str_add(out, ", \"project\": ");
    add_text(out, spec->project);
    str_add(out, ", \"queue\": ");
    add_text(out, spec->queue);
    str_printf(out, ", \"priority\": %d, \"seed\": %lld, \"tags\": [", spec->priority,
               (long long)spec->seed);
    for (int i = 0; i < spec->tags_count; i++) {
        str_add(out, i ? ", " : "");
        add_text(out, spec->tags[i]);
    }
    str_add(out, "], \"notes\": ");
    add_text(out, spec->notes);
    str_add(out, ",\n");
}

void spec_to_json(const struct spec *spec, struct str *out)
{
    add_identity(out, spec);
    str_add(out, " \"model\": {\"layers\": [");
    for (int i = 0; i < spec->layers_count; i++) {
        str_add(out, i ? ",\n  " : "\n  ");
        add_layer(out, &spec->layers[i]);
    }
    str_add(out, "]},\n \"data\": {\"dataset\": ");
    add_text(out, spec->data.dataset);
    str_printf(out, ", \"batch_size\": %lld, \"shuffle\": ", (long long)spec->data.batch_size);
    if (spec->data.shuffle > 0)
        str_printf(out, "%lld", (long long)spec->data.shuffle);
    else
        str_add(out, spec->data.shuffle ? "true" : "false");
    str_printf(out, ", \"validation\": %lld},\n", (long long)spec->data.validation);
    add_train(out, &spec->train);
    add_tasks(out, spec);
    str_printf(out,
               " \"checkpoint\": {\"every_steps\": %lld, \"every_seconds\": %lld, "
               "\"keep_latest\": %lld},\n \"restart\": {\"max\": %d},\n",
               (long long)spec->checkpoint.every_steps,
               (long long)spec->checkpoint.every_seconds,
               (long long)spec->checkpoint.keep_latest, spec->restart_max);
    add_stop(out, &spec->stop);
    str_printf(out, " \"trace\": {\"every_steps\": %lld}}\n",
               (long long)spec->trace_every_steps);
}
