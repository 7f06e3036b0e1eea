/* nodes_spec.c - see nodes_spec.h. */

#include "server/nodes_spec.h"

#include <jansson.h>
#include <string.h>

#include "runtime/spec/spec.h"
#include "scheduler/loop.h"

int64_t nodes_stall_ms(const char *text, const struct loop_task *task)
{
    if (!strstr(text, "\"stall_seconds\""))
        return 0;
    json_t *spec = json_loads(text, 0, NULL);
    json_t *seconds = json_object_get(json_object_get(spec, "stop"), "stall_seconds");
    bool has_chief = json_object_get(json_object_get(spec, "tasks"), "chief") != NULL;
    bool first = strcmp(task->role, has_chief ? "chief" : "worker") == 0 && task->index == 0;
    int64_t ms = first ? json_integer_value(seconds) * 1000 : 0;
    json_decref(spec);
    return ms;
}

static bool has_word(const json_t *list, const char *word)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!strcmp(json_string_value(json_array_get(list, i)), word))
            return true;
    }
    return false;
}

/* How many restarts a spec lets its job have after crashes. */
static int restarts_max(const json_t *spec)
{
    const json_t *restart = json_object_get(spec, "restart");
    const json_t *on = json_object_get(restart, "on"), *max = json_object_get(restart, "max");
    if ((on && !has_word(on, "crash")) ||
        has_word(json_object_get(restart, "never_on"), "crash"))
        return 0;
    return max ? (int)json_integer_value(max) : SPEC_RESTARTS;
}

int nodes_restarts(const char *text, const struct loop_task *task)
{
    if (!strstr(text, "\"strategy\"") || strcmp(task->role, "worker") != 0 || !task->index)
        return 0;
    json_t *spec = json_loads(text, 0, NULL);
    const json_t *strategy = json_object_get(spec, "strategy");
    const char *mode = json_string_value(json_object_get(strategy, "mode"));
    const json_t *elastic = json_object_get(strategy, "elastic");
    bool alone = (mode && !strcmp(mode, "async")) || json_is_true(elastic) ||
                 json_is_object(elastic) ||
                 json_integer_value(json_object_get(strategy, "backup_workers")) > 0;
    int restarts = alone ? restarts_max(spec) : 0;
    json_decref(spec);
    return restarts;
}
