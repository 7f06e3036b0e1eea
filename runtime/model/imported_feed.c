/* imported_feed.c - what the placeholders of an imported graph are fed with. */

#include "base/str.h"
#include "runtime/model/imported_internal.h"
#include "runtime/op.h"

bool imported_is_placeholder(const struct node *node)
{
    return !strcmp(node->op->name, "Placeholder") || !strcmp(node->op->name, "PlaceholderV2");
}

static bool can_be_fed(const struct node *node)
{
    return imported_is_placeholder(node) || !strcmp(node->op->name, "PlaceholderWithDefault");
}

static const char *input_name(const struct importing *g, const char *feature)
{
    const struct spec_graph *graph = &g->spec->graph;
    for (int i = 0; i < graph->inputs_count; i++) {
        if (!strcmp(graph->inputs[i].name, feature))
            return graph->inputs[i].tensor;
    }
    for (int i = 0; i < g->meta.inputs_count; i++) {
        if (!strcmp(g->meta.inputs[i].name, feature))
            return g->meta.inputs[i].tensor;
    }
    return feature;
}

/* The placeholder that takes the feature; one that may be missing: no node if it is. */
static struct edge find_input(struct importing *g, const struct model_feature *feature,
                              bool wanted)
{
    enum { TOLD = 20 };
    const struct graph *graph = g->m.b.graph;
    struct edge edge = {0};
    struct error ignored; /* what there is tells more */
    struct str all = {0};
    int count = 0;
    if (graph_edge(graph, input_name(g, feature->name), &edge, &ignored) &&
        can_be_fed(edge.from))
        return edge;
    if (!wanted && input_name(g, feature->name) == feature->name)
        return (struct edge){0};
    for (int i = 0; i < g->nodes_count; i++) {
        if (can_be_fed(graph_node(graph, i)) && count++ < TOLD)
            str_printf(&all, "%s\"%s\"", count > 1 ? ", " : "", graph_node(graph, i)->name);
    }
    build_refuse(&g->m, INVALID,
                 "no placeholder takes \"%s\" of the data: \"inputs\" says which, "
                 "{\"%s\": NAME}; there %s%s",
                 feature->name, feature->name, count ? "are: " : "is none", str_text(&all));
    str_release(&all);
    return (struct edge){0};
}

/* Whoever read the placeholder reads `edge` instead. */
static void rewire(struct importing *g, struct edge placeholder, struct edge edge)
{
    struct graph *graph = g->m.b.graph;
    for (int i = 0; i < g->nodes_count; i++) {
        struct node *node = graph_node(graph, i);
        for (int k = 0; k < node->inputs_count; k++) {
            if (node->inputs[k].from == placeholder.from)
                graph_set_input(graph, node, k, edge);
        }
    }
}

/* Examples of as many numbers, in the shape that the placeholder declares. */
static struct edge reshape(struct importing *g, struct edge x, struct edge placeholder,
                           const struct model_feature *feature)
{
    const struct shape *shape = node_attr_shape(placeholder.from, "shape");
    struct shape wanted = shape ? *shape : SHAPE_UNKNOWN, is = *build_shape(&g->m, x);
    char takes[SHAPE_TEXT_BYTES], gives[SHAPE_TEXT_BYTES];
    if (!build_ok(&g->m) || shape_compatible(&wanted, &is))
        return x;
    shape_text(&wanted, takes, sizeof(takes));
    shape_text(&is, gives, sizeof(gives));
    struct shape one = wanted;
    if (wanted.rank > 0)
        one.dims[0] = 1;
    if (wanted.rank > 0 && wanted.dims[0] < 0 && shape_is_full(&one) &&
        shape_count(&one) == shape_count(&feature->shape))
        return build_reshape(&g->m, x, wanted.dims, wanted.rank);
    build_refuse(&g->m, INVALID,
                 "the placeholder \"%s\" takes %s, \"%s\" of the data is %s with the examples "
                 "in front",
                 placeholder.from->name, takes, feature->name, gives);
    return x;
}

static void feed(struct importing *g, const struct model_feature *feature, bool wanted)
{
    struct build *m = &g->m;
    struct shape batch = {.rank = feature->shape.rank + 1, .dims = {-1}};
    memcpy(batch.dims + 1, feature->shape.dims,
           (size_t)feature->shape.rank * sizeof(*batch.dims));
    struct edge input = find_input(g, feature, wanted);
    if (!build_ok(m))
        return;
    struct edge x =
        builder_add(&m->b, "Placeholder", feature->name, NO_INPUTS,
                    ATTRS(attr_type("dtype", feature->dtype), attr_shape("shape", &batch)));
    if (build_ok(m) && strcmp(x.from->name + strlen(IMPORTED_SCOPE), feature->name) != 0)
        build_refuse(m, INVALID, "the graph has a node \"" IMPORTED_SCOPE "%s\" already",
                     feature->name);
    if (build_ok(m) && !g->examples.from) {
        static const int64_t first = 0, one = 1;
        g->examples = build_cast(m, build_slice(m, build_shape_of(m, x), &first, &one, 1), F32);
    }
    if (!input.from)
        return;
    int type = build_ok(m) ? input.from->output_types[0] : feature->dtype;
    const uint64_t numbers = DTYPES_REAL | BIT(BOOL);
    if (type != feature->dtype && (!(numbers & BIT(type)) || !(numbers & BIT(feature->dtype))))
        build_refuse(m, INVALID, "the placeholder \"%s\" takes %s, \"%s\" of the data is %s",
                     input.from->name, dtype_name((enum dtype)type), feature->name,
                     dtype_name((enum dtype)feature->dtype));
    struct edge made = reshape(g, build_cast(m, x, (enum dtype)type), input, feature);
    if (build_ok(m))
        rewire(g, input, made);
}

static bool is_feature(const struct model_data *data, const char *name)
{
    bool is = !strcmp(data->target.name, name) ||
              (data->weight.name && !strcmp(data->weight.name, name));
    for (int i = 0; !is && i < data->features_count; i++)
        is = !strcmp(data->features[i].name, name);
    return is;
}

void imported_feed(struct importing *g)
{
    const struct spec_graph *graph = &g->spec->graph;
    imported_at(g, IMPORTED_POINTER "/inputs");
    for (int i = 0; i < graph->inputs_count && build_ok(&g->m); i++) {
        if (!is_feature(g->data, graph->inputs[i].name))
            build_refuse(&g->m, INVALID, "the data has no \"%.60s\"", graph->inputs[i].name);
    }
    for (int i = 0; i < g->data->features_count && build_ok(&g->m); i++)
        feed(g, &g->data->features[i], true);
    /* What nobody asks for is fed to nobody: a graph may learn without a target. */
    if (build_ok(&g->m))
        feed(g, &g->data->target, false);
    if (build_ok(&g->m) && g->data->weight.name)
        feed(g, &g->data->weight, false);
}
