/*
 * spec_graph.c - a model that another program wrote: "model": {"graph": ...}, a MetaGraphDef in
 * base64, alone or with the names of its parts.
 */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/model/metric.h"
#include "runtime/spec/spec_internal.h"

#define GRAPH_NAME_BYTES 1000
#define GRAPH_INPUTS_MAX 1000

/* {"images": "x:0"} */
static bool tensors_parse(const struct spec_object *graph, const char *field, size_t count_max,
                          const struct spec_tensor **out, int *out_count)
{
    struct spec_object list;
    const char *name;
    json_t *value;
    if (!spec_read_object(graph, field, &list))
        return false;
    size_t count = json_object_size(list.json);
    if (count > count_max)
        return error_at(graph->err, list.pointer, INVALID, "%s has %zu names, allowed: %zu",
                        field, count, count_max);
    struct spec_tensor *tensors = arena_array(graph->arena, count + 1, sizeof(*tensors));
    json_object_foreach(list.json, name, value)
    {
        struct spec_tensor *tensor = &tensors[*out_count];
        tensor->name = arena_text(graph->arena, name);
        if (!spec_read_text(&list, name, GRAPH_NAME_BYTES, &tensor->tensor))
            return false;
        if (tensor->tensor)
            (*out_count)++;
    }
    *out = tensors;
    return true;
}

/* The means that are followed beside the loss are metrics of the job like any other. */
static bool metrics_set(const struct spec_object *graph, struct spec *spec)
{
    const struct spec_graph *from = &spec->graph;
    const char *pointer = spec_read_pointer(graph, "metrics", -1);
    struct spec_metric *metrics =
        arena_array(graph->arena, (size_t)from->metrics_count + 1, sizeof(*metrics));
    for (int i = 0; i < from->metrics_count; i++) {
        const char *name = from->metrics[i].name;
        if (!spec_is_name(name) || strlen(name) > SPEC_GRAPH_METRIC_BYTES ||
            !strcmp(name, "loss"))
            return error_at(graph->err, pointer, INVALID,
                            "a metric is named \"%.60s\", allowed: 1 to %d of the letters A-Z "
                            "a-z 0-9 . _ -, not \"loss\"",
                            name, SPEC_GRAPH_METRIC_BYTES);
        metrics[i] =
            (struct spec_metric){.name = name,
                                 .config = config_default(config_find(&metric_family, "Mean"),
                                                          &metric_family, graph->arena)};
    }
    spec->train.metrics = metrics;
    spec->train.metrics_count = from->metrics_count;
    return true;
}

static bool parts_parse(const struct spec_object *graph, struct spec *spec)
{
    static const char *const allowed[] = {"meta_graph", "loss",   "train",   "init",
                                          "output",     "inputs", "metrics", NULL};
    struct spec_graph *out = &spec->graph;
    if (spec_read_value(graph, "file"))
        return error_at(graph->err, spec_read_pointer(graph, "file", -1), INVALID,
                        "a file is put in by the command line (trainyard submit, train): here "
                        "its bytes go into meta_graph, in base64, also compressed by gzip");
    return spec_read_only(graph, allowed) &&
           spec_read_required(graph, "meta_graph", "a MetaGraphDef in base64") &&
           spec_read_text(graph, "meta_graph", LIMIT_HTTP_BODY_BYTES, &out->meta_graph) &&
           spec_read_text(graph, "loss", GRAPH_NAME_BYTES, &out->loss) &&
           spec_read_text(graph, "train", GRAPH_NAME_BYTES, &out->train) &&
           spec_read_text(graph, "init", GRAPH_NAME_BYTES, &out->init) &&
           spec_read_text(graph, "output", GRAPH_NAME_BYTES, &out->output) &&
           tensors_parse(graph, "inputs", GRAPH_INPUTS_MAX, &out->inputs, &out->inputs_count) &&
           tensors_parse(graph, "metrics", SPEC_METRICS_MAX, &out->metrics,
                         &out->metrics_count) &&
           metrics_set(graph, spec);
}

bool spec_parse_graph(const struct spec_object *model, struct spec *spec)
{
    struct spec_object graph;
    spec->output = -1;
    if (!json_is_string(spec_read_value(model, "graph")))
        return spec_read_object(model, "graph", &graph) && parts_parse(&graph, spec);
    return spec_read_text(model, "graph", LIMIT_HTTP_BODY_BYTES, &spec->graph.meta_graph);
}

/* --- back as JSON --- */

static void add_text(struct str *out, const char *field, const char *text)
{
    if (!text)
        return;
    str_printf(out, ", \"%s\": ", field);
    str_add_json(out, text, strlen(text));
}

static void add_tensors(struct str *out, const char *field, const struct spec_tensor *tensors,
                        int count)
{
    if (!count)
        return;
    str_printf(out, ", \"%s\": {", field);
    for (int i = 0; i < count; i++) {
        str_add(out, i ? ", " : "");
        str_add_json(out, tensors[i].name, strlen(tensors[i].name));
        str_add(out, ": ");
        str_add_json(out, tensors[i].tensor, strlen(tensors[i].tensor));
    }
    str_add_char(out, '}');
}

void spec_graph_write(const struct spec_graph *graph, struct str *out)
{
    str_add(out, "{\"meta_graph\": ");
    str_add_json(out, graph->meta_graph, strlen(graph->meta_graph));
    add_text(out, "loss", graph->loss);
    add_text(out, "train", graph->train);
    add_text(out, "init", graph->init);
    add_text(out, "output", graph->output);
    add_tensors(out, "inputs", graph->inputs, graph->inputs_count);
    add_tensors(out, "metrics", graph->metrics, graph->metrics_count);
    str_add_char(out, '}');
}
