/* spec_strategy.c - how the tasks of a model train together. */

#include "base/limits.h"
#include "runtime/dtype.h"
#include "runtime/spec/spec_internal.h"

int spec_tasks(const struct spec *spec)
{
    int count = 0;
    for (int role = 0; role < SPEC_ROLES; role++)
        count += spec->tasks[role].replicas;
    return count;
}

/* What several tasks cannot do yet, by the field that asks for it. */
static bool check_several(const struct spec_object *whole, const struct spec *spec)
{
    const struct {
        bool asked;
        const char *pointer, *text;
    } rows[] = {
        {spec->graph.meta_graph, "/model/graph",
         "a graph that another program wrote trains in one task; allowed with several: layers"},
        {spec->train.precision == BF16, "/train/precision",
         "precision is bfloat16, allowed with several tasks: float32"},
        {spec->train.check_numerics, "/train/check_numerics",
         "check_numerics is true, allowed with several tasks: false"},
        {spec->tasks[ROLE_WORKER].gpus || spec->tasks[ROLE_WORKER].gpu_share,
         "/tasks/worker/gpus", "GPUs are for one worker alone, allowed with several tasks: 0"},
        {spec->tasks[ROLE_PS].gpus || spec->tasks[ROLE_PS].gpu_share, "/tasks/ps/gpus",
         "variables lie in main memory, allowed: 0 GPUs"},
    };
    for (int i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].asked)
            return error_at(whole->err, rows[i].pointer, UNIMPLEMENTED, "%s", rows[i].text);
    }
    return true;
}

static bool check_tasks(const struct spec_object *whole, const struct spec *spec)
{
    static const enum spec_role others[] = {ROLE_CHIEF, ROLE_EVALUATOR};
    int workers = spec->tasks[ROLE_WORKER].replicas;
    for (int i = 0; i < ARRAY_LEN(others); i++) {
        const char *name = spec_role_name(others[i]);
        char pointer[40];
        snprintf(pointer, sizeof(pointer), "/tasks/%s", name);
        if (spec->tasks[others[i]].replicas)
            return error_at(
                whole->err, pointer, UNIMPLEMENTED,
                "%d tasks of role %s: a model trains with workers and ps; the first "
                "worker is chief and evaluates",
                spec->tasks[others[i]].replicas, name);
    }
    if (spec->data.batch_size > SPEC_BATCH_MAX / workers)
        return error_at(whole->err, "/data/batch_size", INVALID,
                        "batch_size is %lld for each of %d workers, allowed: %d in all",
                        (long long)spec->data.batch_size, workers, SPEC_BATCH_MAX);
    return spec_tasks(spec) == 1 || check_several(whole, spec);
}

bool spec_parse_strategy(const struct spec_object *whole, struct spec *spec)
{
    static const char *const allowed[] = {"mode", "backup_workers", "compress", "elastic",
                                          NULL};
    static const char *const modes[] = {"sync", "async", "allreduce", "pipeline", NULL};
    static const char *const compressions[] = {"none", "bfloat16", "float16", NULL};
    static const char synchronous[] = "this version trains synchronously, with all workers";
    struct spec_object object;
    int mode = 0, compress = 0;
    int64_t backup = 0;
    bool elastic = false;
    if (!spec_read_object(whole, "strategy", &object) ||
        (object.json && !spec_read_only(&object, allowed)) ||
        !spec_read_choice(&object, "mode", modes, &mode) ||
        !spec_read_integer(&object, "backup_workers", 0, LIMIT_JOB_TASKS, &backup) ||
        !spec_read_choice(&object, "compress", compressions, &compress) ||
        !spec_read_bool(&object, "elastic", &elastic))
        return false;
    return (!mode || spec_read_not_yet(&object, "mode", NULL, synchronous)) &&
           (!backup || spec_read_not_yet(&object, "backup_workers", NULL, synchronous)) &&
           (!compress || spec_read_not_yet(&object, "compress", NULL, synchronous)) &&
           (!elastic || spec_read_not_yet(&object, "elastic", NULL, synchronous)) &&
           check_tasks(whole, spec);
}
