/* spec_strategy.c - how the tasks of a model train together. */

#include "base/limits.h"
#include "runtime/dtype.h"
#include "runtime/spec/config.h"
#include "runtime/spec/spec_internal.h"

#define SPEC_MICRO_BATCHES_MAX 256

const char *const spec_modes[] = {"sync", "async", "allreduce", "pipeline", NULL};

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

bool spec_replicates(const struct spec *spec)
{
    return spec_tasks(spec) > 1 && spec->strategy.mode != MODE_PIPELINE && !spec->pins_count;
}

int64_t spec_step_examples(const struct spec *spec)
{
    int64_t batch = spec->data.batch_size;
    return !spec_replicates(spec) || spec->strategy.mode == MODE_ASYNC
               ? batch
               : batch * (spec->tasks[ROLE_WORKER].replicas - spec->strategy.backup);
}

static bool check_backup(const struct spec_object *strategy, const struct spec *spec,
                         int64_t backup, bool sync)
{
    int workers = spec->tasks[ROLE_WORKER].replicas;
    if (!backup || (sync && backup < workers))
        return true;
    const char *pointer = spec_read_pointer(strategy, "backup_workers", -1);
    if (!sync)
        return error_at(strategy->err, pointer, INVALID,
                        "backup_workers is %lld, but only \"mode\": \"sync\" waits for workers",
                        (long long)backup);
    return error_at(strategy->err, pointer, INVALID,
                    "backup_workers is %lld of %d workers, allowed: 0 to %d", (long long)backup,
                    workers, workers - 1);
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
    if (spec_replicates(spec) && spec->data.batch_size > SPEC_BATCH_MAX / workers)
        return error_at(whole->err, "/data/batch_size", INVALID,
                        "batch_size is %lld for each of %d workers, allowed: %d in all",
                        (long long)spec->data.batch_size, workers, SPEC_BATCH_MAX);
    return spec_tasks(spec) == 1 || check_several(whole, spec);
}

/* Where workers do not wait for each other, no step is the one that something is due in. */
static bool check_async(const struct spec_object *whole, const struct spec *spec)
{
    static const char *const arguments[] = {"gradient_accumulation_steps",
                                            "ema_overwrite_frequency"};
    const struct config *optimizer = spec->train.optimizer;
    for (int i = 0; optimizer && i < ARRAY_LEN(arguments); i++) {
        char pointer[80];
        snprintf(pointer, sizeof(pointer), "/train/optimizer/%s", arguments[i]);
        if (!config_is_null(optimizer, arguments[i]))
            return error_at(whole->err, pointer, INVALID,
                            "%s counts steps of all workers; with \"mode\": \"async\" each "
                            "has its own, allowed: null",
                            arguments[i]);
    }
    return true;
}

/* Every worker has all variables. */
static bool check_allreduce(const struct spec_object *whole, const struct spec *spec)
{
    int servers = spec->tasks[ROLE_PS].replicas;
    return !servers || error_at(whole->err, "/tasks/ps", INVALID,
                                "%d parameter servers, but with \"mode\": \"allreduce\" the "
                                "workers keep the variables themselves, allowed: 0",
                                servers);
}

/* Layers that have a place are those of one model, not of one for each worker. */
static bool check_pins(const struct spec_object *whole, const struct spec *spec)
{
    enum spec_mode mode = spec->strategy.mode;
    return !spec->pins_count || mode == MODE_PIPELINE ||
           (mode == MODE_SYNC && !spec->strategy.backup) ||
           error_at(whole->err, "/placement/pins", INVALID,
                    "pins put one model on several tasks, but with %s each worker has all of "
                    "it; allowed: \"mode\": \"sync\" without backup workers, or \"pipeline\"",
                    mode == MODE_SYNC ? "backup workers" : "this mode");
}

/* The largest number of equal parts that is worth having: up to four for each stage. */
static int parts_of(int64_t batch, int stages)
{
    int parts = 4 * stages;
    while (batch % parts)
        parts--;
    return parts;
}

/* Stages are workers; a batch is cut into equal parts. */
static bool check_pipeline(const struct spec_object *strategy, struct spec *spec)
{
    static const char text[] =
        "with \"mode\": \"pipeline\" workers keep the variables of their "
        "layers, allowed: 0 parameter servers";
    int stages = spec->tasks[ROLE_WORKER].replicas, parts = spec->strategy.micro_batches;
    int64_t batch = spec->data.batch_size;
    if (spec->tasks[ROLE_PS].replicas)
        return error_at(strategy->err, "/tasks/ps", INVALID, text);
    if (stages > spec->layers_count && !spec->pins_count)
        return error_at(strategy->err, "/tasks/worker", INVALID,
                        "%d workers for %d layers, allowed: one for each layer at most", stages,
                        spec->layers_count);
    if (!parts)
        parts = spec->strategy.micro_batches = parts_of(batch, stages);
    return batch % parts == 0 ||
           error_at(strategy->err, spec_read_pointer(strategy, "micro_batches", -1), INVALID,
                    "micro_batches is %d, but a batch of %lld is not so many equal parts",
                    parts, (long long)batch);
}

/* --- variables in parts --- */

static const char *const partitioners[] = {"none", "fixed_size_partitioner",
                                           "min_max_variable_partitioner", NULL};

int spec_parts_of(const struct spec_strategy *strategy, int64_t rows, int64_t bytes)
{
    int64_t parts = strategy->partitions;
    if (strategy->partitioner == PARTITION_NONE)
        return 1;
    if (strategy->partitioner == PARTITION_MIN_MAX) {
        int64_t wanted = (bytes + strategy->min_slice_size - 1) / strategy->min_slice_size;
        parts = wanted < parts ? wanted : parts;
    }
    parts = rows < parts ? rows : parts;
    return parts > 1 ? (int)parts : 1;
}

static bool check_partitioner(const struct spec_object *strategy, const struct spec *spec)
{
    bool parts = spec->tasks[ROLE_PS].replicas > 0 && spec_replicates(spec);
    const char *pointer = spec_read_pointer(strategy, "partitioner", -1);
    return parts ||
           error_at(strategy->err, pointer, INVALID,
                    "partitioner cuts variables into parts for parameter servers, and there "
                    "are none: tasks.ps, with \"mode\": \"sync\" or \"async\" and without "
                    "pins");
}

static bool parse_partitioner(const struct spec_object *strategy, struct spec *spec)
{
    static const char *const fixed[] = {"name", "num_shards", NULL};
    static const char *const min_max[] = {"name", "max_partitions", "min_slice_size", NULL};
    struct spec_object object;
    int which = PARTITION_NONE;
    int64_t servers = spec->tasks[ROLE_PS].replicas, parts = servers ? servers : 1;
    int64_t bytes = 256 << 10;
    if (!spec_read_object(strategy, "partitioner", &object))
        return false;
    if (!object.json)
        return true;
    if (!spec_read_choice(&object, "name", partitioners, &which) ||
        !spec_read_only(&object, which == PARTITION_MIN_MAX ? min_max : fixed) ||
        !spec_read_integer(&object,
                           which == PARTITION_MIN_MAX ? "max_partitions" : "num_shards", 1,
                           LIMIT_JOB_TASKS, &parts) ||
        (which == PARTITION_MIN_MAX &&
         !spec_read_integer(&object, "min_slice_size", 1, LIMIT_TENSOR_BYTES, &bytes)))
        return false;
    spec->strategy.partitioner = (enum spec_partitioner)which;
    spec->strategy.partitions = (int)parts;
    spec->strategy.min_slice_size = bytes;
    return which == PARTITION_NONE || check_partitioner(strategy, spec);
}

const char *spec_partitioner_name(enum spec_partitioner partitioner)
{
    return partitioners[partitioner];
}

/* --- elastic --- */

static bool check_elastic(const struct spec_object *strategy, const struct spec *spec)
{
    const struct spec_strategy *s = &spec->strategy;
    bool waits = s->mode == MODE_SYNC || s->mode == MODE_ALLREDUCE;
    return (waits && !s->backup && !spec->pins_count) ||
           error_at(
               strategy->err, spec_read_pointer(strategy, "elastic", -1), INVALID,
               "elastic lets the others do the work of workers that are lost; allowed with "
               "\"mode\": \"sync\" or \"allreduce\", without backup workers and pins");
}

/* true, or {"min_workers": 2}. */
static bool parse_elastic(const struct spec_object *strategy, struct spec *spec)
{
    static const char *const allowed[] = {"min_workers", NULL};
    struct spec_object object;
    int64_t least = 1;
    bool elastic = false;
    int workers = spec->tasks[ROLE_WORKER].replicas;
    if (json_is_object(json_object_get(strategy->json, "elastic"))) {
        if (!spec_read_object(strategy, "elastic", &object) ||
            !spec_read_only(&object, allowed) ||
            !spec_read_integer(&object, "min_workers", 1, workers, &least))
            return false;
        elastic = true;
    } else if (!spec_read_bool(strategy, "elastic", &elastic)) {
        return false;
    }
    spec->strategy.min_workers = elastic ? (int)least : 0;
    return !elastic || check_elastic(strategy, spec);
}

bool spec_parse_strategy(const struct spec_object *whole, struct spec *spec)
{
    static const char *const allowed[] = {
        "mode", "backup_workers", "compress", "elastic", "micro_batches", "partitioner", NULL};
    static const char *const compressions[] = {"none", "bfloat16", "float16", NULL};
    static const enum dtype travels[] = {F32, BF16, F16};
    struct spec_object object;
    int mode = 0, compress = 0;
    int64_t backup = 0, parts = 0;
    if (!spec_read_object(whole, "strategy", &object) ||
        (object.json && !spec_read_only(&object, allowed)) ||
        !spec_read_choice(&object, "mode", spec_modes, &mode) ||
        !spec_read_integer(&object, "backup_workers", 0, LIMIT_JOB_TASKS, &backup) ||
        !spec_read_choice(&object, "compress", compressions, &compress) ||
        !spec_read_integer(&object, "micro_batches", 1, SPEC_MICRO_BATCHES_MAX, &parts))
        return false;
    spec->strategy = (struct spec_strategy){
        .mode = (enum spec_mode)mode,
        .backup = (int)backup,
        .compress = travels[compress],
        .micro_batches = (int)parts,
    };
    return parse_elastic(&object, spec) && parse_partitioner(&object, spec) &&
           (mode != MODE_ASYNC || check_async(whole, spec)) &&
           (mode != MODE_ALLREDUCE || check_allreduce(whole, spec)) &&
           check_backup(&object, spec, backup, mode == MODE_SYNC) && check_tasks(whole, spec) &&
           check_pins(whole, spec) &&
           (mode != MODE_PIPELINE || check_pipeline(&object, spec)) &&
           (mode == MODE_PIPELINE || !parts ||
            error_at(object.err, spec_read_pointer(&object, "micro_batches", -1), INVALID,
                     "micro_batches is %lld, but only \"mode\": \"pipeline\" has such",
                     (long long)parts));
}
