/* memory.c - refuses before the first step what cannot fit. */

#include "runtime/memory.h"

#include "runtime/graph.h"
#include "runtime/machine.h"
#include "runtime/train/internal.h"

int64_t memory_limit(const struct train *train, const char **pointer)
{
    int64_t asked = train->spec->tasks[ROLE_WORKER].memory_bytes, machine = machine_memory();
    *pointer = asked && asked < machine ? "/tasks/worker/memory_bytes" : "/data/batch_size";
    return asked && asked < machine ? asked : machine;
}

static void tell_largest(const struct memory_estimate *memory, struct str *text)
{
    enum { TOLD = 3 };
    char shape[SHAPE_TEXT_BYTES];
    for (int i = 0; i < memory->tensors_count && i < TOLD; i++) {
        const struct memory_tensor *tensor = &memory->tensors[i];
        str_printf(text, "%s'%s' %s%s %lld", i ? ", " : "", tensor->node->name,
                   dtype_name(tensor->dtype), shape_text(&tensor->shape, shape, sizeof(shape)),
                   (long long)tensor->bytes);
    }
}

static bool check(const struct train *train, const struct runner_call *of, const char *what,
                  struct error *err)
{
    const struct callable *call = runner_callable(of);
    if (!call)
        return true;
    const char *pointer;
    int64_t limit = memory_limit(train, &pointer);
    struct memory_estimate memory;
    session_estimate(call, &memory);
    bool fits = memory_total(&memory) <= limit;
    if (!fits) {
        struct str largest = {0};
        tell_largest(&memory, &largest);
        error_at(
            err, pointer, EXHAUSTED,
            "%s needs at least %lld bytes, the limit is %lld: %lld for variables, %lld for "
            "tensors during '%s', of which the largest are %s",
            what, (long long)memory_total(&memory), (long long)limit,
            (long long)memory.variable_bytes, (long long)memory.peak_bytes,
            memory.at ? memory.at->name : "", str_text(&largest));
        str_release(&largest);
    }
    memory_release(&memory);
    return fits;
}

bool memory_check(struct train *train, struct error *err)
{
    return check(train, train->step_call, "a training step", err) &&
           check(train, train->eval_call, "an evaluation", err);
}
