/*
 * fuzz_graph.c - GraphDefs: whatever is loaded and run, the session answers or fails, and goes
 * on.
 *
 * Each graph is extended into a session of its own and nodes of it are run one after the other,
 * placeholders fed, with little memory and little time.
 */

#include "base/alloc.h"
#include "base/limits.h"
#include "kernels/list.h"
#include "runtime/function_library.h"
#include "runtime/graph.h"
#include "runtime/op.h"
#include "runtime/session.h"
#include "runtime/tensor.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutate.h"

enum { FEEDS_MAX = 16, MEMORY = 32 << 20 };

/*
 * A run prepares and computes up to all nodes of the graph: a large one gets fewer.  One whose
 * runs only wait (for a queue that nobody fills) is soon left alone.
 */
enum { RUNS_MIN = 3, RUNS_MAX = 24, NODES_MAX = 1200, TIMEOUT_MS = 200, WAITS_MAX = 2 };

extern const ProtobufCMessageDescriptor tensorflow__graph_def__descriptor;

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t size_max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed);
int LLVMFuzzerInitialize(int *argc, char ***argv);
const char *__lsan_default_suppressions(void);

/* What libgomp keeps for a thread is let go as the thread ends: a moment in between looks like
 * a leak. */
const char *__lsan_default_suppressions(void)
{
    return "leak:libgomp";
}

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

/* What nobody reads first, then others, from a node on that follows from the graph's bytes. */
static void pick_nodes(const struct graph *graph, uint32_t from, bool *picked)
{
    int count = graph_count(graph), left = NODES_MAX / count;
    left = left < RUNS_MIN ? RUNS_MIN : left > RUNS_MAX ? RUNS_MAX : left;
    bool *read = alloc_array((size_t)count, sizeof(*read));
    for (int i = 0; i < count; i++) {
        const struct node *node = graph_node(graph, i);
        for (int k = 0; k < node->inputs_count; k++)
            if (node->inputs[k].from)
                read[node->inputs[k].from->id] = true;
        for (int k = 0; k < node->controls_count; k++)
            read[node->controls[k]->id] = true;
    }
    for (int others = 0; others < 2; others++)
        for (int i = 0; i < count && left > 0; i++) {
            int id = (int)((from + (uint32_t)i) % (uint32_t)count);
            if (read[id] == others) {
                picked[id] = true;
                left--;
            }
        }
    free(read);
}

/* False when the run had to wait for too long. */
static bool run_node(struct session *session, const struct node *node, struct feeds *feeds)
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
    return err.code != DEADLINE;
}

/* In the order of the graph: what initialises comes early there. */
static void run_nodes(struct session *session, const void *bytes, size_t size)
{
    const struct graph *graph = session_graph(session);
    if (!graph_count(graph) || writes_files(graph))
        return;
    struct feeds feeds = {0};
    make_feeds(graph, &feeds);
    bool *picked = alloc_array((size_t)graph_count(graph), sizeof(*picked));
    pick_nodes(graph, crc32c(bytes, size), picked);
    for (int i = 0, waits = 0; i < graph_count(graph) && waits < WAITS_MAX; i++)
        if (picked[i] && !run_node(session, graph_node(graph, i), &feeds))
            waits++;
    for (int i = 0; i < feeds.count; i++)
        tensor_release(&feeds.values[i]);
    free(picked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err = {0};
    struct session_options options = {.threads = 1, .memory_bytes_max = MEMORY};
    struct session *session = session_new(&options, &err);
    FUZZ_CHECK(session);
    if (session_extend(session, data, size, &err))
        run_nodes(session, data, size);
    else
        FUZZ_CHECK(err.code && err.text[0]);
    session_free(session);
    return 0;
}
