/*
 * fuzz_graph.c - GraphDefs: whatever is loaded and run, the session answers or fails, and goes
 * on.
 *
 * Each graph is extended into a session of its own and its nodes are run one after the other,
 * placeholders fed, with little memory and little time.
 */

#include "base/limits.h"
#include "kernels/list.h"
#include "runtime/function_library.h"
#include "runtime/graph.h"
#include "runtime/op.h"
#include "runtime/session.h"
#include "runtime/tensor.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

enum { RUNS_MAX = 24, FEEDS_MAX = 16, MEMORY = 32 << 20, TIMEOUT_MS = 1000 };

extern const ProtobufCMessageDescriptor tensorflow__graph_def__descriptor;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);
int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    kernels_add(false);
    return 0;
}

static const char *op_name(int index)
{
    return op_at(index)->name;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
    const struct mutate_words words = {op_name, op_count()};
    size_t made = seed % 16 ? mutate_message(&tensorflow__graph_def__descriptor, data, size,
                                             size_max, seed, &words)
                            : 0;
    return made ? made : LLVMFuzzerMutate(data, size, size_max);
}

/* Ops that write where a graph says: a fuzzer must not. */
static bool writes(const char *op)
{
    static const char *const ops[] = {"Save", "WriteFile", "MergeV2", "Print",   "CacheDataset",
                                      "Log",  "Summary",   "Delete",  "Snapshot"};
    for (int k = 0; k < ARRAY_LEN(ops); k++)
        if (strstr(op, ops[k]))
            return true;
    return false;
}

static bool writes_files(const struct graph *graph)
{
    struct function_library *library = graph_library(graph);
    for (int i = 0; i < graph_count(graph); i++)
        if (writes(graph_node(graph, i)->op->name))
            return true;
    for (int i = 0; i < function_library_mark(library).functions; i++) {
        const struct function_def *def = function_library_at(library, i);
        for (int k = 0; k < def->nodes_count; k++)
            if (writes(def->nodes[k].op))
                return true;
    }
    return false;
}

/* --- feeds: small numbers in the shape that the placeholder declares --- */

struct feeds {
    const char *names[FEEDS_MAX];
    struct tensor values[FEEDS_MAX];
    int count;
};

static bool make_value(const struct node *node, struct tensor *out)
{
    struct error err;
    const struct shape *declared = node_attr_shape(node, "shape");
    struct shape shape = SHAPE(2, 3);
    enum dtype dtype = (enum dtype)dtype_base(node->output_types[0]);
    if (declared && declared->rank > 0) {
        shape = *declared;
        for (int i = 0; i < shape.rank; i++)
            shape.dims[i] = shape.dims[i] < 0 ? 2 : shape.dims[i];
    }
    int64_t count = shape_count(&shape);
    if (!dtype_known(dtype) || dtype == RESOURCE || dtype == VARIANT || count < 0 ||
        count > 100000 || !tensor_init(out, dtype, &shape, &err))
        return false;
    for (int64_t i = 0; i < count; i++) {
        if (dtype == STRING)
            tensor_set_string(out, i, "a1b2", (size_t)(i % 5));
        else
            memset((char *)out->data + (size_t)i * dtype_size(dtype),
                   (int)(dtype == BOOL ? i % 2 : i % 3), i % 7 ? 1 : dtype_size(dtype));
    }
    return true;
}

static void make_feeds(const struct graph *graph, struct feeds *feeds)
{
    for (int i = 0; i < graph_count(graph) && feeds->count < FEEDS_MAX; i++) {
        const struct node *node = graph_node(graph, i);
        if (strncmp(node->op->name, "Placeholder", 11) != 0 || node->outputs_count != 1)
            continue;
        if (make_value(node, &feeds->values[feeds->count]))
            feeds->names[feeds->count++] = node->name;
    }
}

/* --- running --- */

static void run_node(struct session *session, const struct node *node, struct feeds *feeds)
{
    char fetch[LIMIT_NODE_NAME_BYTES + 8];
    snprintf(fetch, sizeof(fetch), "%s:0", node->name);
    const char *names[] = {fetch}, *targets[] = {node->name};
    bool has_output = node->outputs_count > 0;
    struct session_run run = {
        .feeds = feeds->names,
        .feed_values = feeds->values,
        .feeds_count = feeds->count,
        .fetches = names,
        .fetches_count = has_output,
        .targets = targets,
        .targets_count = 1,
        .timeout_ms = TIMEOUT_MS,
    };
    struct tensor out;
    struct error err = {0};
    if (session_run(session, &run, &out, &err)) {
        if (has_output)
            tensor_release(&out);
    } else {
        FUZZ_CHECK(err.code && err.text[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    struct session_options options = {.threads = 1, .memory_bytes_max = MEMORY};
    struct session *session = session_new(&options, &err);
    FUZZ_CHECK(session);
    if (session_extend(session, data, size, &err)) {
        const struct graph *graph = session_graph(session);
        struct feeds feeds = {0};
        int count = graph_count(graph);
        if (!writes_files(graph)) {
            make_feeds(graph, &feeds);
            for (int i = 0; i < RUNS_MAX && i < count; i++)
                run_node(session, graph_node(graph, count - 1 - i), &feeds);
        }
        for (int i = 0; i < feeds.count; i++)
            tensor_release(&feeds.values[i]);
    } else {
        FUZZ_CHECK(err.code && err.text[0]);
    }
    session_free(session);
    return 0;
}
