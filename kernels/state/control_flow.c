/* control_flow.c - ops around control flow that the executor does not do itself. */

#include "base/error.h"
#include "runtime/kernel.h"

/* One of several references. */
static bool ref_select_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *index = kernel_in(call, 0);
    int count = call->in_count - 1;
    if (index->shape.rank != 0)
        return fail(err, INVALID, "Index must be a scalar, but it has rank %d",
                    index->shape.rank);
    int chosen = tensor_i32(index)[0];
    if (chosen < 0 || chosen >= count)
        return fail(err, INVALID, "Index must be in the range [0, %d) but got %d", count,
                    chosen);
    struct variable *variable = kernel_variable(call, 1 + chosen, err);
    if (!variable)
        return false;
    kernel_output_ref(call, 0, variable);
    return true;
}

/* Ends the run; the process goes on, since it serves others too. */
static bool abort_run(struct kernel_call *call, struct error *err)
{
    const char *text = node_attr_string(call->node, "error_msg", "");
    if (node_attr_bool(call->node, "exit_without_error", false))
        return fail(err, CANCELLED, "the run was ended by node '%s'", call->node->name);
    return fail(err, ABORTED, "%s", text[0] ? text : "the run was aborted");
}

const struct kernel kernel_ref_select = {
    .op = "RefSelect", .device = CPU, .run = ref_select_run};
const struct kernel kernel_abort = {.op = "Abort", .device = CPU, .run = abort_run};
