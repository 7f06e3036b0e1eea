/*
 * functional.c - calls of functions that were not lowered: those of functions that call
 * themselves, and loops over functions that nobody needed lowered.
 */

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "kernels/list.h"
#include "runtime/function.h"
#include "runtime/op.h"

/* --- values that a call passes on --- */

static struct tensor *share_inputs(const struct kernel_call *call, int first, int *count)
{
    *count = call->in_count - first;
    struct tensor *args = alloc_array((size_t)*count + 1, sizeof(*args));
    for (int i = 0; i < *count; i++)
        tensor_share(&args[i], kernel_in(call, first + i));
    return args;
}

static void release_all(struct tensor *tensors, int count)
{
    for (int i = 0; i < count; i++)
        tensor_release(&tensors[i]);
    free(tensors);
}

static bool give_outputs(struct kernel_call *call, struct tensor *results, int count,
                         struct error *err)
{
    for (int i = 0; i < count; i++)
        if (results[i].dtype != dtype_base(call->node->output_types[i]))
            return kernel_fail_output_type(call, i, results[i].dtype, err);
    for (int i = 0; i < count; i++)
        kernel_output_take(call, i, &results[i]);
    return true;
}

/* Runs `function`, whose results are as many as `count`; `results` are to be released. */
static bool run_function(struct kernel_call *call, struct function *function,
                         const struct tensor *args, int args_count, struct tensor *results,
                         int count, struct error *err)
{
    int returned = function_results_count(function);
    if (returned < count)
        return fail(err, INTERNAL, "Missing %d-th output from {{node %s}}", returned,
                    node_shown_name(call->node));
    if (returned > count)
        return fail(err, INVALID, "the function returns %d values, not %d", returned, count);
    for (int i = 0; i < args_count && i < function_args_count(function); i++) {
        enum dtype wanted = function_arg_type(function, i);
        if (args[i].dtype != wanted)
            return fail(err, INVALID, "Expects arg[%d] to be %s but %s is provided", i,
                        dtype_name(wanted), dtype_name(args[i].dtype));
    }
    return function_run(function, args, args_count, results, kernel_cancel(call), err);
}

/* Calls the function on the inputs from `first` on; takes the function over. */
static bool call_function(struct kernel_call *call, struct function *function, int first,
                          struct error *err)
{
    if (!function)
        return false;
    int args_count, count = call->node->outputs_count;
    struct tensor *args = share_inputs(call, first, &args_count);
    struct tensor *results = alloc_array((size_t)count + 1, sizeof(*results));
    bool ok = run_function(call, function, args, args_count, results, count, err) &&
              give_outputs(call, results, count, err);
    release_all(results, count);
    release_all(args, args_count);
    function_unref(function);
    return ok;
}

/* --- which function --- */

static const struct attr_func *func_attr(const struct kernel_call *call, const char *name)
{
    return node_attr(call->node, name)->funcs;
}

static bool partitioned_call_run(struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    const struct attr_func by_name = {node->op->name, node->attrs, node->attrs_count};
    const struct attr_func *f = node->op->signature ? &by_name : func_attr(call, "f");
    return call_function(call, function_get(call, f, err), 0, err);
}

/*
 * Whether `target`, with what it leaves open as the node's device has it, is this device:
 * calls of other tasks are lowered when the graph is cut (runtime/lower_remote.c).
 */
static bool is_here(const struct kernel_call *call, const struct tensor *target,
                    struct error *err)
{
    if (target->count != 1)
        return fail(err, INVALID, "target must be a scalar, it has %lld elements",
                    (long long)target->count);
    const struct tensor_string *name = tensor_strings(target);
    const struct device *here = call->node->device;
    char text[512], full[160], task[160];
    struct device_name wish;
    struct error why;
    snprintf(text, sizeof(text), "%.*s", (int)(name->size < 500 ? name->size : 500),
             name->size ? name->data : "");
    if (!device_name_parse(text, &wish, &why))
        return fail(err, INVALID, "Could not parse %s into a device specification.", text);
    if (device_name_matches(&wish, &here->parts))
        return true;
    device_name_fill(&wish, &here->parts);
    device_name_text(&wish, full, sizeof(full));
    if (!strcmp(here->parts.job, "localhost"))
        return fail(err, INTERNAL,
                    "Currently don't support instantiating functions on device: %s", full);
    bool same_task = !strcmp(wish.job, here->parts.job) && wish.task == here->parts.task &&
                     wish.replica == here->parts.replica;
    if (same_task)
        return fail(err, INVALID, "%s unknown device.", full);
    struct device_name mine = here->parts;
    mine.type[0] = 0;
    mine.index = -1;
    return fail(err, INVALID, "Could not find worker with target: %s Available workers: %s",
                full, device_name_text(&mine, task, sizeof(task)));
}

static bool remote_call_run(struct kernel_call *call, struct error *err)
{
    if (!is_here(call, kernel_in(call, 0), err))
        return false;
    return call_function(call, function_get(call, func_attr(call, "f"), err), 1, err);
}

static bool symbolic_gradient_run(struct kernel_call *call, struct error *err)
{
    return call_function(call, function_get_gradient(call, func_attr(call, "f"), err), 0, err);
}

/* A scalar: not 0, not ""; any other shape: has an element. */
static bool is_true(const struct tensor *tensor)
{
    if (tensor->shape.rank > 0)
        return tensor->count > 0;
    if (tensor->dtype == STRING)
        return tensor_strings(tensor)->size > 0;
    return tensor_number(tensor, 0) != 0;
}

static bool is_askable(const struct tensor *tensor, struct error *err)
{
    const uint64_t askable = BIT(F32) | BIT(F64) | BIT(I64) | BIT(I32) | BIT(U8) | BIT(I16) |
                             BIT(I8) | BIT(BOOL) | BIT(STRING);
    if (tensor->shape.rank > 0 || BIT(tensor->dtype) & askable)
        return true;
    return fail(err, INVALID, "%s cannot be converted to a boolean", dtype_name(tensor->dtype));
}

static bool if_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *cond = kernel_in(call, 0);
    if (!is_askable(cond, err))
        return false;
    const char *branch = is_true(cond) ? "then_branch" : "else_branch";
    return call_function(call, function_get(call, func_attr(call, branch), err), 1, err);
}

static bool case_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *index = kernel_in(call, 0);
    const struct attr *branches = node_attr(call->node, "branches");
    if (index->count != 1)
        return fail(err, INVALID, "branch_index must be a scalar");
    int64_t i = tensor_integer(index, 0);
    if (i < 0 || i >= branches->count)
        i = branches->count - 1;
    return call_function(call, function_get(call, &branches->funcs[i], err), 1, err);
}

/* --- loops --- */

/* The results of the body become the next arguments. */
static bool step_loop(struct kernel_call *call, struct function *body, struct tensor *args,
                      int args_count, struct tensor *values, int count, struct error *err)
{
    struct tensor *results = alloc_array((size_t)count + 1, sizeof(*results));
    bool ok = run_function(call, body, args, args_count, results, count, err);
    for (int i = 0; ok && i < count; i++) {
        tensor_release(&values[i]);
        values[i] = results[i];
        results[i] = (struct tensor){0};
    }
    release_all(results, count);
    return ok;
}

static bool ask_cond(struct kernel_call *call, struct function *cond,
                     const struct tensor *values, int count, bool *again, struct error *err)
{
    struct tensor answer = {0};
    if (!run_function(call, cond, values, count, &answer, 1, err))
        return false;
    bool ok = is_askable(&answer, err);
    *again = ok && is_true(&answer);
    tensor_release(&answer);
    return ok;
}

static bool while_run(struct kernel_call *call, struct error *err)
{
    struct function *cond = function_get(call, func_attr(call, "cond"), err);
    struct function *body = cond ? function_get(call, func_attr(call, "body"), err) : NULL;
    int count;
    struct tensor *values = share_inputs(call, 0, &count);
    bool again = true, ok = body;
    while (ok && again) {
        ok = ask_cond(call, cond, values, count, &again, err);
        if (ok && again)
            ok = step_loop(call, body, values, count, values, count, err);
    }
    ok = ok && give_outputs(call, values, count, err);
    release_all(values, count);
    function_unref(body);
    function_unref(cond);
    return ok;
}

static bool for_bounds(const struct kernel_call *call, int64_t bounds[3], struct error *err)
{
    static const char *const names[] = {"start", "limit", "delta"};
    for (int i = 0; i < 3; i++) {
        const struct tensor *bound = kernel_in(call, i);
        if (bound->shape.rank != 0)
            return fail(err, INVALID, "%s must be a scalar", names[i]);
        bounds[i] = tensor_integer(bound, 0);
    }
    if (bounds[2] == 0 && bounds[0] != bounds[1])
        return fail(err, INVALID, "delta is 0, so that the loop would not end");
    if ((bounds[2] > 0 && bounds[0] > bounds[1]) || (bounds[2] < 0 && bounds[0] < bounds[1]))
        return fail(err, INVALID, "start and limit do not fit the sign of delta");
    return true;
}

static bool for_run(struct kernel_call *call, struct error *err)
{
    int64_t bounds[3];
    if (!for_bounds(call, bounds, err))
        return false;
    struct function *body = function_get(call, func_attr(call, "body"), err);
    int count;
    struct tensor *args = share_inputs(call, 2, &count); /* one more in front: the index */
    bool ok = body;
    for (int64_t i = bounds[0]; ok && (bounds[2] > 0 ? i < bounds[1] : i > bounds[1]);
         i += bounds[2]) {
        tensor_release(&args[0]);
        ok = tensor_init_scalar(&args[0], I32, (double)i, err) &&
             step_loop(call, body, args, count, args + 1, count - 1, err);
    }
    ok = ok && give_outputs(call, args + 1, count - 1, err);
    release_all(args, count);
    function_unref(body);
    return ok;
}

/* --- small ones --- */

static bool to_bool_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *x = kernel_in(call, 0);
    if (!is_askable(x, err))
        return false;
    struct tensor *y = kernel_output(call, 0, &SHAPE_SCALAR, err);
    if (!y)
        return false;
    *(bool *)y->data = is_true(x);
    return true;
}

static bool fake_param_run(struct kernel_call *call, struct error *err)
{
    (void)call;
    return fail(err, INVALID, "FakeParam stands for a value that nobody computes");
}

#define KERNEL_OF_CALL(name_, op_, run_)                                                       \
    const struct kernel kernel_##name_ = {.op = op_, .device = CPU, .run = run_}

KERNEL_OF_CALL(if, "If", if_run);
KERNEL_OF_CALL(stateless_if, "StatelessIf", if_run);
KERNEL_OF_CALL(case, "Case", case_run);
KERNEL_OF_CALL(stateless_case, "StatelessCase", case_run);
KERNEL_OF_CALL(while, "While", while_run);
KERNEL_OF_CALL(stateless_while, "StatelessWhile", while_run);
KERNEL_OF_CALL(for, "For", for_run);
KERNEL_OF_CALL(partitioned_call, "PartitionedCall", partitioned_call_run);
KERNEL_OF_CALL(stateful_partitioned_call, "StatefulPartitionedCall", partitioned_call_run);
KERNEL_OF_CALL(remote_call, "RemoteCall", remote_call_run);
KERNEL_OF_CALL(symbolic_gradient, "SymbolicGradient", symbolic_gradient_run);
KERNEL_OF_CALL(to_bool, "ToBool", to_bool_run);
KERNEL_OF_CALL(fake_param, "FakeParam", fake_param_run);
