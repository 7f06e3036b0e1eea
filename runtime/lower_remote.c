/*
 * lower_remote.c - calls of functions on other devices.
 *
 * A RemoteCall whose target is a constant is a call whose body has that device: who cuts the
 * graph by device then has its arguments sent there and its results back.  What it cannot tell
 * (the target is known only in the run) stays a call of its kernel, which
 * calls what is on its own device.
 */

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/lower.h"
#include "runtime/op.h"
#include "runtime/tensor.h"

/* The text of a constant string; NULL: it is none. */
static const char *constant_text(struct lower *l, struct edge edge)
{
    const struct node *node = edge.from;
    const struct tensor *value =
        !strcmp(node->op->name, "Const") ? node_attr_tensor(node, "value") : NULL;
    if (!value || value->dtype != STRING || value->count != 1)
        return NULL;
    const struct tensor_string *text = tensor_strings(value);
    return arena_printf(graph_arena(l->graph), "%.*s", (int)text->size,
                        text->size ? text->data : "");
}

/* In TensorFlow's words: its task knows no such task, or that task no such device. */
static bool fail_target(struct lower *l, const struct lower_call *call,
                        const struct device_name *target)
{
    const struct node *node = call->node;
    char full[160], task[160];
    struct str tasks = {0};
    device_name_text(target, full, sizeof(full));
    bool known = false;
    for (int i = 0; i < l->devices_count; i++) {
        struct device_name parts = l->devices[i].parts;
        known |= device_name_same_task(&parts, target);
        parts.type[0] = 0;
        parts.index = -1;
        if (!i || !device_name_same_task(&parts, &l->devices[i - 1].parts))
            str_printf(&tasks, "%s%s", i ? ", " : "",
                       device_name_text(&parts, task, sizeof(task)));
    }
    if (known)
        (void)fail(l->err, INVALID, "node '%s' (%s): %s unknown device.", node->name,
                   node->op->name, full);
    else
        (void)fail(l->err, INVALID,
                   "node '%s' (%s): Could not find worker with target: %s Available workers: "
                   "%s",
                   node->name, node->op->name, full, str_text(&tasks));
    str_release(&tasks);
    return false;
}

bool lower_target(struct lower *l, const struct lower_call *call, const char **device)
{
    const struct node *node = call->node;
    const char *text = l->devices_count ? constant_text(l, node->inputs[0]) : NULL;
    const char *requested = node->requested_device ? node->requested_device : "";
    struct device_name target, own;
    struct error odd;
    *device = NULL;
    if (!text || !device_name_parse(text, &target, &odd) ||
        !device_name_parse(requested, &own, &odd))
        return true;
    device_name_fill(&target, &own);
    for (int i = 0; i < l->devices_count; i++)
        if (device_name_matches(&target, &l->devices[i].parts)) {
            char full[160];
            *device = arena_text(graph_arena(l->graph),
                                 device_name_text(&target, full, sizeof(full)));
            return true;
        }
    device_name_fill(&target, &l->devices[0].parts);
    return fail_target(l, call, &target);
}

const char *lower_device_on(struct lower *l, const char *wish, const char *target)
{
    struct device_name name, on;
    struct error odd;
    char full[160];
    if (!device_name_parse(wish, &name, &odd) || !device_name_parse(target, &on, &odd))
        return wish;
    device_name_fill(&name, &on);
    return arena_text(graph_arena(l->graph), device_name_text(&name, full, sizeof(full)));
}
