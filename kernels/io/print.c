/* print.c - tensors and texts on the task's output. */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "kernels/ref/summarize.h"
#include "runtime/io/file.h"
#include "runtime/kernel.h"

/* --- Print: how often a node has printed --- */

static bool print_prepare(const struct node *node, void **state, struct error *err)
{
    (void)node;
    (void)err;
    *state = alloc_bytes(sizeof(int64_t));
    return true;
}

static bool print_run(struct kernel_call *call, struct error *err)
{
    (void)err;
    const struct tensor *value = kernel_in(call, 0);
    int64_t first_n = node_attr_int(call->node, "first_n", -1);
    int64_t *printed = call->state;
    if (first_n < 0 || __atomic_fetch_add(printed, 1, __ATOMIC_RELAXED) < first_n) {
        struct str line = {0};
        str_add(&line, node_attr_string(call->node, "message", ""));
        for (int i = 1; i < call->in_count; i++) {
            str_add_char(&line, '[');
            kernel_summarize(kernel_in(call, i), node_attr_int(call->node, "summarize", 3),
                             &line);
            str_add_char(&line, ']');
        }
        str_add_char(&line, '\n');
        fwrite(line.data, 1, line.size, stderr);
        str_release(&line);
    }
    kernel_output_share(call, 0, value, &value->shape);
    return true;
}

/* --- PrintV2 --- */

static FILE *find_stream(const char *name)
{
    if (!strcmp(name, "stdout"))
        return stdout;
    if (!strcmp(name, "stderr") || !strcmp(name, "log(info)") ||
        !strcmp(name, "log(warning)") || !strcmp(name, "log(error)"))
        return stderr;
    return NULL;
}

static bool print_v2_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *text = kernel_in(call, 0);
    const char *name = node_attr_string(call->node, "output_stream", "stderr");
    const char *end = node_attr_string(call->node, "end", "\n");
    char shape[SHAPE_TEXT_BYTES];
    if (text->shape.rank != 0)
        return fail(err, INVALID, "Input is expected to be scalar, but got %s",
                    shape_text(&text->shape, shape, sizeof(shape)));
    static const char prefix[] = "file://";
    bool is_file = !strncmp(name, prefix, strlen(prefix));
    FILE *out = is_file ? fopen(name + strlen(prefix), "ab") : find_stream(name);
    if (!out && is_file)
        return file_error_stock(err, name + strlen(prefix));
    if (!out)
        return fail(err, INVALID,
                    "Unknown output stream: %s, Valid streams are: stdout stderr log(info) "
                    "log(warning) log(error)",
                    name);
    struct str line = {0};
    str_add_bytes(&line, tensor_strings(text)->data, tensor_strings(text)->size);
    str_add(&line, end);
    bool ok = fwrite(line.data, 1, line.size, out) == line.size;
    ok = (is_file ? fclose(out) : fflush(out)) == 0 && ok;
    str_release(&line);
    return ok || error_errno(err, UNKNOWN, "%s", name);
}

const struct kernel kernel_print = {
    .op = "Print", .device = CPU, .prepare = print_prepare, .release = free, .run = print_run};
const struct kernel kernel_print_v2 = {.op = "PrintV2", .device = CPU, .run = print_v2_run};
