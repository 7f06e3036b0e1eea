/*
 * function.c - calling a user's functions: captured tensors, and a state for each pipeline.
 */

#include "runtime/function.h"
#include "base/alloc.h"
#include "kernels/data/dataset.h"

int kernel_dataset_list(const struct node *node, const char *name)
{
    const struct attr *attr = node_attr(node, name);
    return attr ? attr->count : 0;
}

bool kernel_dataset_function(struct dataset_function *function, struct kernel_call *call,
                             const char *name, int first, int count, int args, int results,
                             struct error *err)
{
    const struct attr *attr = node_attr(call->node, name);
    if (!attr || attr->kind != ATTR_FUNC)
        return fail(err, INVALID, "node '%s' has no function '%s'", call->node->name, name);
    function->captured = kernel_row_new(count);
    function->captured_count = count;
    for (int i = 0; i < count; i++)
        tensor_share(&function->captured[i], kernel_in(call, first + i));
    function->function = function_get(call, &attr->funcs[0], err);
    if (!function->function)
        return false;
    function->has_state = function_has_state(function->function);
    int takes = function_args_count(function->function);
    int gives = function_results_count(function->function);
    if (takes != args + count)
        return fail(err, INVALID,
                    "function '%s' takes %d arguments, but the dataset gives it %d",
                    attr->funcs[0].name, takes, args + count);
    return gives == results ||
           fail(err, INVALID, "function '%s' gives %d results, but the dataset expects %d",
                attr->funcs[0].name, gives, results);
}

int kernel_dataset_results(struct kernel_call *call, const char *name, struct error *err)
{
    const struct attr *attr = node_attr(call->node, name);
    struct function *function = NULL;
    if (!attr || attr->kind != ATTR_FUNC)
        fail(err, INVALID, "node '%s' has no function '%s'", call->node->name, name);
    else
        function = function_get(call, &attr->funcs[0], err);
    int results = function ? function_results_count(function) : -1;
    function_unref(function);
    return results;
}

void kernel_dataset_function_release(struct dataset_function *function)
{
    function_unref(function->function);
    kernel_row_release(function->captured, function->captured_count);
    free(function->captured);
}

/* --- states --- */

struct own_function {
    struct function *shared; /* what the dataset holds; both counted */
    struct function *own;
};

void kernel_pipeline_init(struct pipeline *pipeline, struct cancel *cancel)
{
    *pipeline = (struct pipeline){.cancel = cancel};
    pthread_mutex_init(&pipeline->lock, NULL);
}

void kernel_pipeline_clear(struct pipeline *pipeline)
{
    for (int i = 0; i < pipeline->functions_count; i++) {
        function_unref(pipeline->functions[i].shared);
        function_unref(pipeline->functions[i].own);
    }
    pipeline->functions_count = 0;
}

void kernel_pipeline_release(struct pipeline *pipeline)
{
    kernel_pipeline_clear(pipeline);
    free(pipeline->functions);
    pthread_mutex_destroy(&pipeline->lock);
}

/* The pipeline's own, made when it is first called; borrowed. */
static struct function *own_of(struct pipeline *pipeline, struct function *shared,
                               struct error *err)
{
    struct pipeline *root = pipeline->root ? pipeline->root : pipeline;
    struct function *own = NULL;
    pthread_mutex_lock(&root->lock);
    for (int i = 0; i < root->functions_count && !own; i++)
        if (root->functions[i].shared == shared)
            own = root->functions[i].own;
    if (!own && (own = function_again(shared, err))) {
        root->functions = alloc_grow(root->functions, root->functions_count,
                                     &root->functions_capacity, sizeof(struct own_function));
        function_ref(shared);
        root->functions[root->functions_count++] = (struct own_function){shared, own};
    }
    pthread_mutex_unlock(&root->lock);
    return own;
}

bool kernel_dataset_call(const struct dataset_function *function, struct pipeline *pipeline,
                         const struct tensor *args, int args_count, struct tensor *results,
                         struct error *err)
{
    int count = args_count + function->captured_count;
    struct function *callee = function->function;
    if (function->has_state && !(callee = own_of(pipeline, callee, err)))
        return false;
    struct tensor *all = alloc_array((size_t)count, sizeof(*all)); /* borrowed copies */
    if (args_count)
        memcpy(all, args, (size_t)args_count * sizeof(*all));
    if (function->captured_count)
        memcpy(all + args_count, function->captured,
               (size_t)function->captured_count * sizeof(*all));
    bool ok = function_run(callee, all, count, results, pipeline->cancel, err);
    free(all);
    return ok;
}

bool kernel_dataset_test(const struct dataset_function *function, struct pipeline *pipeline,
                         const struct tensor *args, int args_count, bool *yes,
                         struct error *err)
{
    struct tensor result = {0};
    if (!kernel_dataset_call(function, pipeline, args, args_count, &result, err))
        return false;
    bool ok = result.dtype == BOOL && result.count == 1;
    *yes = ok && *(const bool *)result.data;
    tensor_release(&result);
    return ok || fail(err, INVALID, "`predicate` must returns a scalar bool tensor.");
}
