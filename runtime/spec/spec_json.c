/* spec_json.c - a job spec back as JSON, with every default written out. */

#include "base/str.h"
#include "runtime/dtype.h"
#include "runtime/spec/config.h"
#include "runtime/spec/spec_internal.h"

static void add_text(struct str *out, const char *text)
{
    str_add_json(out, text, strlen(text));
}

static void add_flag(struct str *out, const char *field, bool value)
{
    str_printf(out, ", \"%s\": %s", field, value ? "true" : "false");
}

/* The shortest decimal that reads back as the same number. */
static void add_real(struct str *out, const char *field, double value)
{
    str_printf(out, ", \"%s\": ", field);
    config_write_number(value, out);
}

static void add_layer(struct str *out, const struct spec *spec, int index)
{
    const struct spec_layer *layer = &spec->layers[index];
    str_printf(out, "{\"%s\": \"%s\", \"name\": ", layer->shared == index ? "layer" : "reuse",
               layer->shared == index ? layer->config->class->name
                                      : spec->layers[layer->shared].name);
    add_text(out, layer->name);
    str_add(out, layer->inputs_count ? ", \"inputs\": [" : "");
    for (int i = 0; i < layer->inputs_count; i++) {
        const struct spec_input *input = &layer->inputs[i];
        str_printf(out, input->output ? "%s\"%s:%d\"" : "%s\"%s\"", i ? ", " : "",
                   spec->layers[input->layer].name, input->output);
    }
    str_add(out, layer->inputs_count ? "]" : "");
    if (layer->shared == index) {
        if (!layer->trainable)
            add_flag(out, "trainable", false);
        config_write_arguments(layer->config, out);
    }
    str_add_char(out, '}');
}

static void add_metrics(struct str *out, const struct spec_train *train, bool weighted)
{
    bool first = true;
    str_add(out, "[");
    for (int i = 0; i < train->metrics_count; i++) {
        if (train->metrics[i].weighted != weighted)
            continue;
        str_add(out, first ? "" : ", ");
        first = false;
        bool exact = config_is(train->metrics[i].config, "Accuracy");
        const char *name = train->metrics[i].name;
        if (weighted && !strncmp(name, SPEC_WEIGHTED, strlen(SPEC_WEIGHTED)))
            name += strlen(SPEC_WEIGHTED);
        if (!exact && !strcmp(name, "accuracy"))
            str_add(out, "\"accuracy\"");
        else
            config_write(train->metrics[i].config, out);
    }
    str_add(out, "]");
}

static void add_init(struct str *out, const struct spec_init *init)
{
    if (!init->job && !init->file)
        return;
    str_printf(out, ",\n  \"init\": {\"%s\": ", init->job ? "job" : "file");
    add_text(out, init->job ? init->job : init->file);
    if (init->step >= 0)
        str_printf(out, ", \"step\": %lld", (long long)init->step);
    add_flag(out, "strict", init->strict);
    str_add_char(out, '}');
}

/* What a graph of another program has in itself. */
static void add_learning(struct str *out, const struct spec_train *train)
{
    str_add(out, "\"loss\": ");
    config_write(train->loss, out);
    str_add(out, ",\n  \"optimizer\": ");
    config_write(train->optimizer, out);
    str_add(out, ",\n  \"metrics\": ");
    add_metrics(out, train, false);
    str_add(out, ", ");
    bool any = false;
    for (int i = 0; i < train->metrics_count; i++)
        any |= train->metrics[i].weighted;
    if (any) {
        str_add(out, "\"weighted_metrics\": ");
        add_metrics(out, train, true);
        str_add(out, ", ");
    }
}

static void add_train(struct str *out, const struct spec_train *train)
{
    str_add(out, " \"train\": {");
    if (train->loss)
        add_learning(out, train);
    str_printf(out, "\"%s\": %lld, \"eval_every\": %lld, \"precision\": \"%s\"",
               train->steps ? "steps" : "epochs",
               (long long)(train->steps ? train->steps : train->epochs),
               (long long)train->eval_every, train->precision == BF16 ? "bfloat16" : "float32");
    add_flag(out, "check_numerics", train->check_numerics);
    add_init(out, &train->init);
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
        str_printf(out, ", \"memory_bytes\": %lld", (long long)task->memory_bytes);
        if (task->gpu_share)
            add_real(out, "gpus", (double)task->gpu_share / 1000);
        else
            str_printf(out, ", \"gpus\": %d", task->gpus);
        str_add(out, ", \"gpu_type\": ");
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

static void add_checkpoint(struct str *out, const struct spec_checkpoint *checkpoint)
{
    str_printf(out,
               " \"checkpoint\": {\"every_steps\": %lld, \"every_seconds\": %lld, "
               "\"keep_latest\": %lld",
               (long long)checkpoint->every_steps, (long long)checkpoint->every_seconds,
               (long long)checkpoint->keep_latest);
    if (checkpoint->keep_best)
        str_printf(out,
                   ", \"keep_best\": {\"count\": %lld, \"metric\": \"%s\", \"mode\": \"%s\"}",
                   (long long)checkpoint->keep_best, checkpoint->best_metric,
                   checkpoint->best_is_more ? "max" : "min");
    str_add(out, "},\n");
}

static void add_early(struct str *out, const struct spec_early *early)
{
    str_printf(out, ", \"early\": {\"metric\": \"%s\", \"patience\": %lld", early->metric,
               (long long)early->patience);
    add_real(out, "min_delta", early->min_delta);
    str_printf(out, ", \"mode\": \"%s\"}", early->more ? "max" : "min");
}

static void add_stall(struct str *out, const struct spec_stop *stop)
{
    if (stop->stall_seconds)
        str_printf(out, ", \"stall_seconds\": %lld", (long long)stop->stall_seconds);
}

static void add_stop(struct str *out, const struct spec_stop *stop)
{
    str_printf(out, " \"stop\": {\"max_steps\": %lld, \"max_seconds\": %lld",
               (long long)stop->max_steps, (long long)stop->max_seconds);
    add_stall(out, stop);
    if (stop->target.metric) {
        str_printf(out, ", \"target\": {\"metric\": \"%s\"", stop->target.metric);
        add_real(out, stop->target.has_min ? "min" : "max",
                 stop->target.has_min ? stop->target.min : stop->target.max);
        str_add_char(out, '}');
    }
    if (stop->early.metric)
        add_early(out, &stop->early);
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
    str_add(out, spec->after_count ? "], \"after\": [" : "");
    for (int i = 0; i < spec->after_count; i++) {
        str_add(out, i ? ", " : "");
        add_text(out, spec->after[i]);
    }
    str_add(out, "], \"notes\": ");
    add_text(out, spec->notes);
    str_add(out, ",\n");
}

static void add_layers(struct str *out, const struct spec *spec)
{
    str_add(out, "\"layers\": [");
    for (int i = 0; i < spec->layers_count; i++) {
        str_add(out, i ? ",\n  " : "\n  ");
        add_layer(out, spec, i);
    }
    str_printf(out, "], \"output\": \"%s\"", spec->layers[spec->output].name);
}

static void add_model(struct str *out, const struct spec *spec)
{
    str_add(out, " \"model\": {");
    if (spec->graph.meta_graph) {
        str_add(out, "\"graph\": ");
        spec_graph_write(&spec->graph, out);
    } else {
        add_layers(out, spec);
    }
    str_add(out, "},\n \"data\": ");
    spec_data_write(&spec->data, out);
    str_add(out, ",\n");
    add_train(out, &spec->train);
}

static void add_strategy(struct str *out, const struct spec_strategy *strategy)
{
    str_printf(out,
               " \"strategy\": {\"mode\": \"%s\", \"backup_workers\": %d, \"compress\": "
               "\"%s\"",
               spec_modes[strategy->mode], strategy->backup,
               strategy->compress == BF16  ? "bfloat16"
               : strategy->compress == F16 ? "float16"
                                           : "none");
    if (strategy->mode == MODE_PIPELINE)
        str_printf(out, ", \"micro_batches\": %d", strategy->micro_batches);
    if (strategy->min_workers)
        str_printf(out, ", \"elastic\": {\"min_workers\": %d}", strategy->min_workers);
    if (strategy->partitioner)
        str_printf(out, ", \"partitioner\": {\"name\": \"%s\", \"%s\": %d",
                   spec_partitioner_name(strategy->partitioner),
                   strategy->partitioner == PARTITION_MIN_MAX ? "max_partitions" : "num_shards",
                   strategy->partitions);
    if (strategy->partitioner == PARTITION_MIN_MAX)
        str_printf(out, ", \"min_slice_size\": %lld", (long long)strategy->min_slice_size);
    if (strategy->partitioner)
        str_add_char(out, '}');
    str_add(out, "},\n");
}

void spec_to_json(const struct spec *spec, struct str *out)
{
    bool program = spec->command.words_count > 0, cluster = spec->idle_seconds > 0;
    bool model = !program && !cluster;
    add_identity(out, spec);
    if (program)
        spec_command_write(&spec->command, out);
    else if (cluster)
        str_printf(out, " \"cluster\": {\"idle_seconds\": %lld},\n",
                   (long long)spec->idle_seconds);
    else
        add_model(out, spec);
    add_tasks(out, spec);
    if (model && (spec_tasks(spec) > 1 || spec->strategy.mode == MODE_PIPELINE))
        add_strategy(out, &spec->strategy);
    str_printf(out, " \"placement\": {\"tasks\": \"%s\"", spec->spread ? "spread" : "pack");
    if (spec->pins_count)
        spec_pins_write(spec, out);
    str_add(out, "},\n");
    if (!model) {
        spec_restart_write(spec, out);
        str_printf(out, " \"stop\": {\"max_seconds\": %lld", (long long)spec->stop.max_seconds);
        add_stall(out, &spec->stop);
        str_add(out, "}}\n");
        return;
    }
    add_checkpoint(out, &spec->checkpoint);
    spec_restart_write(spec, out);
    add_stop(out, &spec->stop);
    str_printf(out, " \"trace\": {\"every_steps\": %lld}}\n",
               (long long)spec->trace_every_steps);
}
