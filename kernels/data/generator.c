/* generator.c - GeneratorDataset: functions that begin, give the next element, and finish. */

#include "base/alloc.h"
#include "kernels/data/dataset.h"

enum { INIT, NEXT, FINALIZE, FUNCTIONS };

struct generator {
    struct dataset dataset;
    struct dataset_function functions[FUNCTIONS];
    int state;     /* tensors that the first gives and the others get */
    int finalized; /* results of the last, which nobody wants */
};

struct generating {
    struct iterator it;
    struct tensor *state;
    bool begun;
};

static const struct generator *generator_of(const struct iterator *it)
{
    return (const struct generator *)it->dataset;
}

/* Calls the last function, once, if the first was called. */
static bool finish(struct generating *generating, struct error *err)
{
    const struct generator *generator = generator_of(&generating->it);
    if (!generating->begun)
        return true;
    generating->begun = false;
    struct tensor *results = kernel_row_new(generator->finalized);
    bool ok = kernel_dataset_call(&generator->functions[FINALIZE], generating->it.pipeline,
                                  generating->state, generator->state, results, err);
    kernel_row_release(results, generator->finalized);
    free(results);
    return ok;
}

/* An iterator that is freed before its end finishes too; nobody is there to hear of errors. */
static void generating_end(struct iterator *it)
{
    struct generating *generating = (struct generating *)it;
    struct error ignored;
    (void)finish(generating, &ignored);
    kernel_row_release(generating->state, generator_of(it)->state);
    free(generating->state);
}

/* The function ends the sequence by failing with OUT_OF_RANGE. */
static bool generating_next(struct iterator *it, struct tensor *out, bool *end,
                            struct error *err)
{
    struct generating *generating = (struct generating *)it;
    const struct generator *generator = generator_of(it);
    if (!generating->begun) {
        generating->state = kernel_row_new(generator->state);
        if (!kernel_dataset_call(&generator->functions[INIT], it->pipeline, NULL, 0,
                                 generating->state, err)) {
            free(generating->state);
            generating->state = NULL;
            return false;
        }
        generating->begun = true;
    }
    if (kernel_dataset_call(&generator->functions[NEXT], it->pipeline, generating->state,
                            generator->state, out, err))
        return true;
    *end = err->code == OUT_OF_RANGE;
    return *end && finish(generating, err);
}

static void generator_release(struct dataset *dataset)
{
    for (int i = 0; i < FUNCTIONS; i++)
        kernel_dataset_function_release(&((struct generator *)dataset)->functions[i]);
}

static const struct dataset_type generator_type = {
    .name = "Generator",
    .dataset_size = sizeof(struct generator),
    .iterator_size = sizeof(struct generating),
    .next = generating_next,
    .end = generating_end,
    .release = generator_release,
};

static bool generator_run(struct kernel_call *call, struct error *err)
{
    const struct node *node = call->node;
    int init = kernel_dataset_list(node, "Tinit_func_args");
    int next = kernel_dataset_list(node, "Tnext_func_args");
    int finalize = kernel_dataset_list(node, "Tfinalize_func_args");
    int state = kernel_dataset_results(call, "init_func", err);
    int finalized = state < 0 ? -1 : kernel_dataset_results(call, "finalize_func", err);
    struct generator *generator =
        finalized < 0
            ? NULL
            : (struct generator *)kernel_dataset_make(call, &generator_type, 0, 0, err);
    if (!generator)
        return false;
    generator->state = state;
    generator->finalized = finalized;
    struct dataset_function *functions = generator->functions;
    if (kernel_dataset_function(&functions[INIT], call, "init_func", 0, init, 0, state, err) &&
        kernel_dataset_function(&functions[NEXT], call, "next_func", init, next, state,
                                generator->dataset.width, err) &&
        kernel_dataset_function(&functions[FINALIZE], call, "finalize_func", init + next,
                                finalize, state, finalized, err))
        return kernel_dataset_output(call, &generator->dataset, err);
    resource_unref(&generator->dataset.resource);
    return false;
}

const struct kernel kernel_generator_dataset = {
    .op = "GeneratorDataset", .device = CPU, .run = generator_run};
