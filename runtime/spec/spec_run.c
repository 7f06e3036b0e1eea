/* spec_run.c - where and how a job runs: tasks, placement, restart, trace. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "runtime/spec/spec_internal.h"

#define SPEC_COUNT_MAX INT64_C(1000000000000)
#define SPEC_CPUS_MAX 4096
#define SPEC_GPUS_MAX 1024
#define SPEC_MEMORY_MAX (INT64_C(1) << 50)
#define RESTARTS_MAX 1000

/* The order is that of enum spec_role. */
static const char *const role_names[] = {"worker", "ps", "chief", "evaluator", NULL};

const char *spec_role_name(enum spec_role role)
{
    return role_names[role];
}

/* --- tasks --- */

static bool labels_parse(const struct spec_object *task, struct spec_task *out)
{
    struct spec_object object;
    if (!spec_read_object(task, "node_labels", &object))
        return false;
    struct spec_label *labels =
        arena_array(task->arena, json_object_size(object.json) + 1, sizeof(*labels));
    const char *name;
    json_t *value;
    json_object_foreach(object.json, name, value)
    {
        struct spec_label *label = &labels[out->node_labels_count++];
        if (!spec_is_name(name))
            return error_at(task->err, spec_read_pointer(&object, name, -1), INVALID,
                            "\"%.60s\" cannot name a label, allowed: 1 to 128 of the letters "
                            "A-Z a-z 0-9 . _ -",
                            name);
        label->name = arena_text(task->arena, name);
        label->value = "";
        if (!spec_read_text(&object, name, LIMIT_NAME_BYTES, &label->value))
            return false;
    }
    out->node_labels = labels;
    return true;
}

/* Whole GPUs, or a part of one: between 0 and 1, in thousandths. */
static bool gpus_parse(const struct spec_object *task, struct spec_task *out)
{
    json_t *json = spec_read_value(task, "gpus");
    int64_t gpus = 0;
    double part = 0;
    if (!json_is_real(json)) {
        if (!spec_read_integer(task, "gpus", 0, SPEC_GPUS_MAX, &gpus))
            return false;
        out->gpus = (int)gpus;
        return true;
    }
    if (!spec_read_number(task, "gpus", 0, SPEC_GPUS_MAX, &part))
        return false;
    out->gpu_share = (int)(part * 1000 + 0.5);
    if (part == (int)part) {
        out->gpus = (int)part;
        out->gpu_share = 0;
        return true;
    }
    if (part < 1 && out->gpu_share > 0 && out->gpu_share < 1000)
        return true;
    char found[SPEC_FOUND_BYTES];
    return error_at(task->err, spec_read_pointer(task, "gpus", -1), INVALID,
                    "gpus is %s, allowed: 0 to %d whole ones, or a part of one from 0.001 to "
                    "0.999",
                    spec_read_found(json, found, sizeof(found)), SPEC_GPUS_MAX);
}

static bool task_parse(const struct spec_object *tasks, const char *role, struct spec_task *out)
{
    json_t *json = spec_read_value(tasks, role);
    if (!json)
        return true;
    int64_t replicas = 1;
    double cpus = 1;
    *out = (struct spec_task){.cpu_millis = 1000, .gpu_type = ""};
    if (json_is_integer(json)) {
        if (!spec_read_integer(tasks, role, 0, LIMIT_JOB_TASKS, &replicas))
            return false;
        out->replicas = (int)replicas;
        return true;
    }
    char found[SPEC_FOUND_BYTES];
    if (!json_is_object(json))
        return error_at(tasks->err, spec_read_pointer(tasks, role, -1), INVALID,
                        "%s is %s, allowed: a number of replicas, or an object", role,
                        spec_read_found(json, found, sizeof(found)));
    static const char *const allowed[] = {"replicas",    "cpus",     "memory_bytes",
                                          "gpus",        "gpu_type", "gpu_memory_bytes",
                                          "node_labels", NULL};
    struct spec_object object = {json, spec_read_pointer(tasks, role, -1), tasks->arena,
                                 tasks->err};
    if (!spec_read_only(&object, allowed) ||
        !spec_read_integer(&object, "replicas", 0, LIMIT_JOB_TASKS, &replicas) ||
        !spec_read_number(&object, "cpus", 0.001, SPEC_CPUS_MAX, &cpus) ||
        !spec_read_integer(&object, "memory_bytes", 0, SPEC_MEMORY_MAX, &out->memory_bytes) ||
        !gpus_parse(&object, out) ||
        !spec_read_text(&object, "gpu_type", LIMIT_NAME_BYTES, &out->gpu_type) ||
        !spec_read_integer(&object, "gpu_memory_bytes", 0, SPEC_MEMORY_MAX,
                           &out->gpu_memory_bytes) ||
        !labels_parse(&object, out))
        return false;
    out->replicas = (int)replicas;
    out->cpu_millis = (int64_t)(cpus * 1000 + 0.5);
    return true;
}

bool spec_parse_tasks(const struct spec_object *tasks, struct spec *spec)
{
    if (tasks->json && !spec_read_only(tasks, role_names))
        return false;
    spec->tasks[ROLE_WORKER] =
        (struct spec_task){.replicas = 1, .cpu_millis = 1000, .gpu_type = ""};
    int total = 0;
    for (int role = 0; role < SPEC_ROLES; role++) {
        if (!task_parse(tasks, role_names[role], &spec->tasks[role]))
            return false;
        total += spec->tasks[role].replicas;
    }
    if (total > LIMIT_JOB_TASKS)
        return error_at(tasks->err, tasks->pointer, INVALID,
                        "%d tasks in all, allowed: at most %d", total, LIMIT_JOB_TASKS);
    if (!spec->tasks[ROLE_WORKER].replicas)
        return error_at(tasks->err, spec_read_pointer(tasks, "worker", -1), INVALID,
                        "worker is 0, allowed: at least 1 replica");
    return true;
}

/* --- placement --- */

bool spec_parse_placement(const struct spec_object *whole, struct spec *spec)
{
    static const char *const allowed[] = {"tasks", "pins", NULL};
    static const char *const ways[] = {"pack", "spread", NULL};
    struct spec_object object;
    int way = 0;
    if (!spec_read_object(whole, "placement", &object) ||
        (object.json && !spec_read_only(&object, allowed)) ||
        !spec_read_choice(&object, "tasks", ways, &way))
        return false;
    spec->spread = way == 1;
    return spec_parse_pins(&object, spec);
}

/* --- restart, trace --- */

/* How a task can end badly, as attempts name it; its number in proto/trainyard/task.proto is
 * FAULT_FIRST more than its place. */
static const char *const faults[] = {"stopped", "user",  "crash", "memory",
                                     "lost",    "start", NULL};
#define FAULT_FIRST 2
#define FAULT_USER 3

/* A list of faults into bits, which are left alone when it is absent. */
static bool faults_parse(const struct spec_object *restart, const char *field, uint32_t *bits)
{
    json_t *list = spec_read_value(restart, field), *item;
    char found[SPEC_FOUND_BYTES];
    size_t index;
    if (!list)
        return true;
    if (!json_is_array(list))
        return error_at(restart->err, spec_read_pointer(restart, field, -1), INVALID,
                        "%s is %s, allowed: a list of faults", field,
                        spec_read_found(list, found, sizeof(found)));
    *bits = 0;
    json_array_foreach(list, index, item)
    {
        const char *name = json_string_value(item);
        int fault = name ? spec_read_find(faults, name) : -1;
        if (fault < 0)
            return spec_read_suggest(
                restart->err, spec_read_pointer(restart, field, (int)index), "unknown fault",
                name ? name : spec_read_found(item, found, sizeof(found)), faults);
        *bits |= UINT32_C(1) << (FAULT_FIRST + fault);
    }
    return true;
}

/* After which faults another attempt is made: those of `on` without those of `never_on`. */
static bool restart_on_parse(const struct spec_object *restart, struct spec *spec)
{
    uint32_t on = 0, never = 0;
    for (int i = 0; faults[i]; i++)
        on |= UINT32_C(1) << (FAULT_FIRST + i);
    on &= ~(UINT32_C(1) << FAULT_USER);
    if (!faults_parse(restart, "on", &on) || !faults_parse(restart, "never_on", &never))
        return false;
    for (int i = 0; faults[i] && spec_read_value(restart, "on"); i++) {
        if (on & never & UINT32_C(1) << (FAULT_FIRST + i))
            return error_at(restart->err, spec_read_pointer(restart, "never_on", -1), INVALID,
                            "%s is in on, too; allowed: one of the two", faults[i]);
    }
    spec->restart_on = on & ~never;
    if (spec->restart_on)
        return true;
    return error_at(restart->err, spec_read_pointer(restart, never ? "never_on" : "on", -1),
                    INVALID, "no fault is left to be tried again after; with max 0 none is");
}

/* true: after the first failure there; or after so many. */
static bool restart_bad_parse(const struct spec_object *restart, struct spec *spec)
{
    json_t *json = spec_read_value(restart, "exclude_bad_nodes");
    char found[SPEC_FOUND_BYTES];
    spec->restart_bad = json_is_true(json);
    if (!json || json_is_boolean(json))
        return true;
    if (!json_is_integer(json) || json_integer_value(json) < 1 ||
        json_integer_value(json) > RESTARTS_MAX)
        return error_at(restart->err, spec_read_pointer(restart, "exclude_bad_nodes", -1),
                        INVALID,
                        "exclude_bad_nodes is %s, allowed: true, false, or after how many "
                        "failures on a node, 1 to %d",
                        spec_read_found(json, found, sizeof(found)), RESTARTS_MAX);
    spec->restart_bad = (int)json_integer_value(json);
    return true;
}

bool spec_parse_restart(const struct spec_object *whole, struct spec *spec)
{
    static const char *const allowed[] = {"max", "on", "never_on", "exclude_bad_nodes", NULL};
    struct spec_object object;
    int64_t max = SPEC_RESTARTS;
    if (!spec_read_object(whole, "restart", &object) ||
        (object.json && !spec_read_only(&object, allowed)) ||
        !spec_read_integer(&object, "max", 0, RESTARTS_MAX, &max))
        return false;
    spec->restart_max = (int)max;
    return restart_on_parse(&object, spec) && restart_bad_parse(&object, spec);
}

void spec_restart_write(const struct spec *spec, struct str *out)
{
    bool first = true;
    str_printf(out, " \"restart\": {\"max\": %d, \"on\": [", spec->restart_max);
    for (int i = 0; faults[i]; i++) {
        if (!(spec->restart_on >> (FAULT_FIRST + i) & 1))
            continue;
        str_printf(out, "%s\"%s\"", first ? "" : ", ", faults[i]);
        first = false;
    }
    if (spec->restart_bad)
        str_printf(out, "], \"exclude_bad_nodes\": %d},\n", spec->restart_bad);
    else
        str_add(out, "], \"exclude_bad_nodes\": false},\n");
}

bool spec_parse_run(const struct spec_object *whole, struct spec *spec)
{
    static const char *const trace_fields[] = {"every_steps", NULL};
    struct spec_object trace;
    if (!spec_parse_placement(whole, spec) || !spec_parse_strategy(whole, spec) ||
        !spec_parse_checkpoint(whole, spec) || !spec_parse_restart(whole, spec) ||
        !spec_parse_stop(whole, spec))
        return false;
    return spec_read_object(whole, "trace", &trace) &&
           (!trace.json || spec_read_only(&trace, trace_fields)) &&
           spec_read_integer(&trace, "every_steps", 0, SPEC_COUNT_MAX,
                             &spec->trace_every_steps);
}
