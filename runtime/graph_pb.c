/* graph_pb.c - graphs from and to GraphDef. */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/attr_pb.h"
#include "runtime/device.h"
#include "runtime/function_library.h"
#include "runtime/graph.h"
#include "runtime/io/wire.h"
#include "runtime/op.h"
#include "tensorflow/graph.pb-c.h"

typedef Tensorflow__GraphDef graph_proto;
typedef Tensorflow__NodeDef node_proto;

/* The version of GraphDef that we write, that of TensorFlow 1.15, and the newest that we read.
 */
#define GRAPH_PRODUCER 134
#define GRAPH_NEWEST 2474

/* So many nodes ahead, a name's place in the index is asked for: about the time of one access
 * to memory. */
#define AHEAD 4

/* Fields as they lie on the wire: GraphDef's node, NodeDef's input. */
#define GRAPH_NODE WIRE_TAG(1, WIRE_BYTES)
#define NODE_INPUT WIRE_TAG(3, WIRE_BYTES)

/* --- reading nodes --- */

/* Adds the node without its inputs. */
static bool read_node(struct graph *graph, const node_proto *proto, struct error *err)
{
    struct arena *arena = graph_arena(graph);
    const struct op *op = function_library_op(graph_library(graph), proto->op);
    if (!op)
        return fail(
            err, NOT_FOUND,
            "Op type not registered '%s' (node '%s'). Make sure the op is in the library "
            "of this runtime",
            proto->op, proto->name);

    struct attr *attrs = arena_array(arena, proto->n_attr, sizeof(*attrs));
    size_t read = 0;
    bool ok = true;
    while (ok && read < proto->n_attr) {
        ok = attr_unpack(&attrs[read], proto->attr[read]->key, proto->attr[read]->value, arena,
                         err);
        read++;
    }
    if (!ok) {
        for (size_t i = 0; i < read; i++)
            attr_release(&attrs[i]);
        return error_prefix(err, "node '%s' (%s): ", proto->name, proto->op);
    }
    const struct node_def def = {
        .name = arena_text(arena, proto->name),
        .op = op,
        .attrs = attrs,
        .attrs_count = (int)proto->n_attr,
        .device = proto->device[0] ? arena_text(arena, proto->device) : "",
    };
    struct node *node = graph_add_imported(graph, &def, err);
    if (node)
        node->shown_name = attr_shown_name(proto, arena);
    return node != NULL;
}

/* The one unknown function that TensorFlow refuses before anybody calls it. */
static bool check_callee(const struct graph *graph, const struct node *node, struct error *err)
{
    bool calls = !strcmp(node->op->name, "PartitionedCall") ||
                 !strcmp(node->op->name, "StatefulPartitionedCall");
    if (!calls || node->fault)
        return true;
    const struct attr *f = node_attr(node, "f");
    if (function_library_find(graph_library(graph), f->funcs->name))
        return true;
    return fail(err, INVALID,
                "node '%s' (%s): Failed to find function \"%s\" in function library",
                node->name, node->op->name, f->funcs->name);
}

/* Room for the inputs of one node after the other. */
struct links {
    struct edge *inputs;
    struct node **controls;
    int inputs_count;
    int controls_count;
    int room;
    struct str text;
};

static void make_room(struct links *links)
{
    if (links->inputs_count + links->controls_count < links->room)
        return;
    links->room = links->room ? 2 * links->room : 16;
    links->inputs = alloc_resize(links->inputs, (size_t)links->room * sizeof(*links->inputs));
    links->controls =
        alloc_resize(links->controls, (size_t)links->room * sizeof(*links->controls));
}

/* An output is written without zeros in front: "x:0", not "x:00". */
static bool is_odd(const char *text)
{
    const char *colon = strrchr(text, ':');
    return colon && colon[1] == '0' && colon[2];
}

/* Gradients that a client makes of a loop ask it for values that its master would add. */
static bool fail_output(const struct graph *graph, const struct node *node, const char *text,
                        struct error *err)
{
    const char *colon = strrchr(text, ':');
    char *name = alloc_text_n(text, colon ? (size_t)(colon - text) : 0);
    const struct node *from = graph_find(graph, name);
    free(name);
    if (!from)
        return error_prefix(err, "Node '%s': input ", node->name);
    bool flows = strstr(from->op->name, "While") || strstr(from->op->name, "If");
    return fail(err, INVALID,
                "Node '%s': Connecting to invalid output %s of source node %s which has %d "
                "outputs.%s",
                node->name, colon + 1, from->name, from->outputs_count,
                flows ? " Try using tf.compat.v1.experimental.output_all_intermediates(True)."
                      : "");
}

static bool link_input(struct graph *graph, const struct node *node, const char *text,
                       struct links *links, struct error *err)
{
    struct edge edge;
    make_room(links);
    if (text[0] == '^') {
        struct node *control = graph_find(graph, text + 1);
        if (!control)
            return fail(err, INVALID, "Node '%s': Unknown input node '%s'", node->name, text);
        links->controls[links->controls_count++] = control;
        return true;
    }
    if (links->controls_count)
        return fail(err, INVALID,
                    "Node '%s': input '%s' comes after a control input; those must be last",
                    node->name, text);
    if (is_odd(text))
        return fail(err, INVALID, "Node '%s': Illegal op input name '%s'", node->name, text);
    if (!graph_edge(graph, text, &edge, err)) {
        if (err->code == NOT_FOUND)
            return fail(err, INVALID, "Node '%s': Unknown input node '%s'", node->name, text);
        return fail_output(graph, node, text, err);
    }
    links->inputs[links->inputs_count++] = edge;
    return true;
}

/* The inputs are read from the wire once more: that costs less than to keep them. */
static bool link_node(struct graph *graph, struct node *node, struct wire wire,
                      struct links *links, struct error *err)
{
    links->inputs_count = 0;
    links->controls_count = 0;
    while (wire_left(&wire)) {
        uint64_t tag;
        struct wire input = {0};
        bool is_whole = wire_varint(&wire, &tag);
        if (is_whole && tag == NODE_INPUT) {
            is_whole = wire_piece(&wire, &input);
            str_clear(&links->text);
            str_add_bytes(&links->text, input.at, wire_left(&input));
            if (!link_input(graph, node, str_text(&links->text), links, err))
                return false;
        } else if (is_whole) {
            is_whole = wire_skip(&wire, tag);
        }
        assert(is_whole); /* it was unpacked before */
    }
    return graph_link_imported(graph, node, links->inputs, links->inputs_count, links->controls,
                               links->controls_count, err);
}

static bool check_versions(const Tensorflow__VersionDef *versions, struct error *err)
{
    if (!versions)
        return true;
    if (versions->producer < 0)
        return fail(err, INVALID, "GraphDef producer version %d is below 0",
                    versions->producer);
    if (versions->min_consumer > GRAPH_NEWEST)
        return fail(err, INVALID,
                    "GraphDef needs a consumer of version %d or later, this one reads up to %d",
                    versions->min_consumer, GRAPH_NEWEST);
    return true;
}

/* A GraphDef whose nodes are still on the wire. */
struct pieces {
    struct wire *nodes;
    int count;
    int room;
    struct str rest; /* all its other fields */
};

static bool take_apart(struct wire wire, struct pieces *pieces, struct error *err)
{
    while (wire_left(&wire)) {
        const uint8_t *start = wire.at;
        uint64_t tag;
        bool is_whole = wire_varint(&wire, &tag);
        if (is_whole && tag == GRAPH_NODE) {
            if (pieces->count == LIMIT_GRAPH_NODES)
                return fail(err, EXHAUSTED, "the graph has more than %d nodes",
                            LIMIT_GRAPH_NODES);
            pieces->nodes =
                alloc_grow(pieces->nodes, pieces->count, &pieces->room, sizeof(*pieces->nodes));
            is_whole = wire_piece(&wire, &pieces->nodes[pieces->count++]);
        } else if (is_whole) {
            is_whole = wire_skip(&wire, tag);
            str_add_bytes(&pieces->rest, start, (size_t)(wire.at - start));
        }
        if (!is_whole)
            return fail(err, INVALID, "malformed GraphDef: a field is cut short");
    }
    return true;
}

/* Nodes are unpacked a few ahead of their reading, each into memory that an earlier one had. */
static bool read_nodes(struct graph *graph, const struct pieces *pieces, struct error *err)
{
    struct arena *arenas[AHEAD + 1] = {0};
    const node_proto *protos[AHEAD + 1];
    int first = graph_count(graph);
    bool ok = true;
    for (int i = 0; ok && i < pieces->count + AHEAD; i++) {
        if (i < pieces->count) {
            struct arena **arena = &arenas[i % (AHEAD + 1)];
            const struct wire *piece = &pieces->nodes[i];
            if (*arena)
                arena_clear(*arena);
            else
                *arena = arena_new();
            const node_proto *proto = message_unpack(&tensorflow__node_def__descriptor,
                                                     piece->at, wire_left(piece), *arena, err);
            ok = proto != NULL;
            if (ok)
                graph_expect(graph, proto->name);
            protos[i % (AHEAD + 1)] = proto;
        }
        if (ok && i >= AHEAD)
            ok = read_node(graph, protos[(i - AHEAD) % (AHEAD + 1)], err) &&
                 check_callee(graph, graph_node(graph, first + i - AHEAD), err);
    }
    for (int i = 0; i <= AHEAD; i++)
        arena_free(arenas[i]);
    return ok;
}

static bool link_nodes(struct graph *graph, const struct pieces *pieces, struct error *err)
{
    struct links links = {0};
    int first = graph_count(graph) - pieces->count;
    bool ok = true;
    for (int i = 0; ok && i < pieces->count; i++)
        ok = link_node(graph, graph_node(graph, first + i), pieces->nodes[i], &links, err);
    free(links.inputs);
    free(links.controls);
    str_release(&links.text);
    return ok;
}

static bool read_graph(struct graph *graph, const struct pieces *pieces, struct arena *arena,
                       struct error *err)
{
    const graph_proto *rest =
        message_unpack(&tensorflow__graph_def__descriptor, str_text(&pieces->rest),
                       pieces->rest.size, arena, err);
    if (!rest || !check_versions(rest->versions, err))
        return false;
    if (rest->library && !function_library_unpack(graph_library(graph), rest->library, err))
        return false;
    graph_reserve(graph, pieces->count);
    return read_nodes(graph, pieces, err) && link_nodes(graph, pieces, err) &&
           graph_check_order(graph, err);
}

bool graph_import(struct graph *graph, const void *bytes, size_t size, struct error *err)
{
    int count = graph_count(graph);
    const struct function_library_mark functions = function_library_mark(graph_library(graph));
    if (size > LIMIT_MESSAGE_BYTES)
        return fail(err, EXHAUSTED, "GraphDef of %zu bytes is over the limit of %lld", size,
                    (long long)LIMIT_MESSAGE_BYTES);
    struct arena *arena = arena_new();
    struct pieces pieces = {0};
    bool ok = take_apart(wire_of(bytes, size), &pieces, err) &&
              read_graph(graph, &pieces, arena, err);
    if (!ok) {
        graph_truncate(graph, count);
        function_library_truncate(graph_library(graph), functions);
    }
    free(pieces.nodes);
    str_release(&pieces.rest);
    arena_free(arena);
    return ok;
}

/* --- writing; messages live in an arena that is cleared after each node --- */

struct writer {
    struct arena *arena;
    bool with_devices;
    size_t const_bytes_max;
};

static void write_inputs(const struct node *node, node_proto *proto, struct arena *arena)
{
    proto->n_input = (size_t)node->inputs_count + (size_t)node->controls_count;
    proto->input = arena_array(arena, proto->n_input, sizeof(*proto->input));
    size_t at = 0;
    for (int i = 0; i < node->inputs_count; i++) {
        const struct edge *edge = &node->inputs[i];
        proto->input[at++] = edge->output
                                 ? arena_printf(arena, "%s:%d", edge->from->name, edge->output)
                                 : (char *)edge->from->name;
    }
    for (int i = 0; i < node->controls_count; i++)
        proto->input[at++] = arena_printf(arena, "^%s", node->controls[i]->name);
}

static void write_shown_name(const struct node *node, node_proto *proto, struct arena *arena)
{
    if (!node->shown_name)
        return;
    proto->experimental_debug_info =
        arena_alloc(arena, sizeof(*proto->experimental_debug_info));
    tensorflow__node_def__experimental_debug_info__init(proto->experimental_debug_info);
    proto->experimental_debug_info->n_original_node_names = 1;
    proto->experimental_debug_info->original_node_names =
        arena_copy(arena, &node->shown_name, sizeof(node->shown_name));
}

static const node_proto *write_node(const struct writer *writer, const struct node *node)
{
    node_proto *proto = arena_alloc(writer->arena, sizeof(*proto));
    tensorflow__node_def__init(proto);
    proto->name = (char *)node->name;
    proto->op = (char *)node->op->name;
    bool placed = writer->with_devices && node->device;
    proto->device = (char *)(placed ? node->device->name : node->requested_device);
    write_inputs(node, proto, writer->arena);
    write_shown_name(node, proto, writer->arena);
    proto->n_attr = (size_t)node->attrs_count;
    proto->attr = arena_array(writer->arena, proto->n_attr, sizeof(*proto->attr));
    for (int i = 0; i < node->attrs_count; i++) {
        Tensorflow__NodeDef__AttrEntry *entry = arena_alloc(writer->arena, sizeof(*entry));
        tensorflow__node_def__attr_entry__init(entry);
        entry->key = (char *)node->attrs[i].name;
        entry->value = attr_pack(&node->attrs[i], writer->const_bytes_max, writer->arena);
        proto->attr[i] = entry;
    }
    return proto;
}

/* Field 1 of GraphDef, length-delimited, in front of each node: never the whole graph twice. */
static void add_node(struct str *out, const node_proto *proto)
{
    size_t size = protobuf_c_message_get_packed_size(&proto->base);
    str_add_char(out, 0x0a);
    for (size_t rest = size;; rest >>= 7) {
        str_add_char(out, (char)(rest < 0x80 ? rest : (rest & 0x7f) | 0x80));
        if (rest < 0x80)
            break;
    }
    protobuf_c_message_pack(&proto->base, (uint8_t *)str_extend(out, size));
}

void graph_export(const struct graph *graph, bool with_devices, size_t const_bytes_max,
                  struct str *out)
{
    struct writer writer = {arena_new(), with_devices, const_bytes_max};
    for (int i = 0; i < graph_count(graph); i++) {
        add_node(out, write_node(&writer, graph_node(graph, i)));
        arena_clear(writer.arena);
    }
    if (graph_library(graph))
        function_library_export(graph_library(graph), out);
    graph_proto rest = TENSORFLOW__GRAPH_DEF__INIT;
    Tensorflow__VersionDef versions = TENSORFLOW__VERSION_DEF__INIT;
    versions.producer = GRAPH_PRODUCER;
    rest.versions = &versions;
    message_pack(&rest.base, out);
    arena_free(writer.arena);
}
