/* import_pb.c - GraphDefs under other names, and in part. */

#include "base/alloc.h"
#include "capi/internal.h"
#include "proto/message.h"
#include "tensorflow/graph.pb-c.h"

typedef Tensorflow__GraphDef graph_proto;
typedef Tensorflow__NodeDef node_proto;

static char *with_prefix(const struct ty_import_options *options, const char *name,
                         struct arena *arena)
{
    return options->prefix ? arena_printf(arena, "%s/%s", options->prefix, name)
                           : arena_text(arena, name);
}

/* What "x", "x:1" stands for when it is mapped; NULL when it is not. */
static char *mapped(const struct ty_import_options *options, const char *input,
                    struct arena *arena)
{
    const char *full = strchr(input, ':') ? input : arena_printf(arena, "%s:0", input);
    for (int i = 0; i < options->count; i++) {
        const struct capi_mapping *mapping = &options->mappings[i];
        if (!strcmp(mapping->name, full))
            return arena_printf(arena, "%s:%d", capi_node(mapping->output.operation)->name,
                                mapping->output.index);
    }
    return NULL;
}

/* "loc:@name", the wish to be where another node is. */
static void rename_class(node_proto *node, const struct ty_import_options *options,
                         struct arena *arena)
{
    for (size_t a = 0; a < node->n_attr; a++) {
        Tensorflow__AttrValue *value = node->attr[a]->value;
        if (strcmp(node->attr[a]->key, "_class") != 0 || !value ||
            value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_LIST)
            continue;
        for (size_t i = 0; i < value->list->n_s; i++) {
            ProtobufCBinaryData *text = &value->list->s[i];
            if (text->len < 5 || memcmp(text->data, "loc:@", 5) != 0)
                continue;
            char *name = arena_text_n(arena, (char *)text->data + 5, text->len - 5);
            char *now = arena_printf(arena, "loc:@%s", with_prefix(options, name, arena));
            text->data = (uint8_t *)now;
            text->len = strlen(now);
        }
    }
}

static void rename_node(node_proto *node, const struct ty_import_options *options,
                        struct arena *arena)
{
    node->name = with_prefix(options, node->name, arena);
    for (size_t i = 0; i < node->n_input; i++) {
        char *input = node->input[i];
        if (input[0] == '^') {
            node->input[i] = arena_printf(arena, "^%s", with_prefix(options, input + 1, arena));
            continue;
        }
        char *to = mapped(options, input, arena);
        node->input[i] = to ? to : with_prefix(options, input, arena);
    }
    rename_class(node, options, arena);
}

bool capi_rename(const struct str *graph_def, const struct ty_import_options *options,
                 struct str *out, struct error *err)
{
    struct arena *arena = arena_new();
    graph_proto *graph = message_unpack(&tensorflow__graph_def__descriptor, str_text(graph_def),
                                        graph_def->size, arena, err);
    for (size_t i = 0; graph && i < graph->n_node; i++)
        rename_node(graph->node[i], options, arena);
    if (graph)
        message_pack(&graph->base, out);
    arena_free(arena);
    return graph;
}

bool capi_tail(const struct str *graph_def, int count, struct str *out, struct error *err)
{
    struct arena *arena = arena_new();
    graph_proto *graph = message_unpack(&tensorflow__graph_def__descriptor, str_text(graph_def),
                                        graph_def->size, arena, err);
    if (graph) {
        assert((size_t)count <= graph->n_node);
        graph->node += count;
        graph->n_node -= (size_t)count;
        message_pack(&graph->base, out);
    }
    arena_free(arena);
    return graph;
}
