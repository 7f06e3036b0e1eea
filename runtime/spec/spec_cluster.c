/* spec_cluster.c - a job of tasks without work of their own, for TensorFlow's clients. */

#include "runtime/spec/spec_internal.h"

#define IDLE_DEFAULT_S 3600
#define IDLE_MAX_S (30 * 24 * 3600)

/* Its tasks have the processor alone; what they cannot use they should not hold. */
static bool refuse_gpus(const struct spec_object *whole, const struct spec *spec)
{
    for (int role = 0; role < SPEC_ROLES; role++) {
        char pointer[40];
        snprintf(pointer, sizeof(pointer), "/tasks/%s/gpus",
                 spec_role_name((enum spec_role)role));
        if (spec->tasks[role].gpus || spec->tasks[role].gpu_share)
            return error_at(whole->err, pointer, UNIMPLEMENTED,
                            "the tasks of a cluster compute on the CPU, allowed: 0 GPUs");
    }
    return true;
}

bool spec_parse_cluster(const struct spec_object *whole, struct spec *spec)
{
    static const char *const allowed[] = {"idle_seconds", NULL};
    struct spec_object object;
    spec->idle_seconds = IDLE_DEFAULT_S;
    if (spec_read_value(whole, "command"))
        return error_at(whole->err, "/cluster", INVALID,
                        "allowed: one of cluster, tasks for TensorFlow's clients, and command, "
                        "a program");
    if (!spec_parse_bare(whole, "cluster", spec) ||
        !spec_read_object(whole, "cluster", &object) || !spec_read_only(&object, allowed) ||
        !spec_read_integer(&object, "idle_seconds", 1, IDLE_MAX_S, &spec->idle_seconds))
        return false;
    if (!spec->name)
        spec->name = "cluster";
    return refuse_gpus(whole, spec);
}
