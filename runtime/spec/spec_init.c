/*
 * spec_init.c - what the variables of a job start from: "train": {"init": {...}}.
 *
 *   {"file": "model.keras"}      Keras's weights, or a checkpoint by its prefix or folder
 *   {"job": 7, "step": 500}      another job's checkpoint, by default the newest
 */

#include "base/arena.h"
#include "base/limits.h"
#include "runtime/spec/spec_internal.h"

#define INIT_STEP_MAX INT64_C(1000000000000)
#define INIT_PATH_BYTES 4096

static bool job_parse(const struct spec_object *init, struct spec_init *out)
{
    json_t *job = spec_read_value(init, "job");
    char found[SPEC_FOUND_BYTES];
    if (!job)
        return true;
    if (json_is_integer(job) && json_integer_value(job) > 0)
        out->job = arena_printf(init->arena, "%lld", (long long)json_integer_value(job));
    else if (json_is_string(job) && spec_is_name(json_string_value(job)))
        out->job = arena_text(init->arena, json_string_value(job));
    else
        return error_at(init->err, spec_read_pointer(init, "job", -1), INVALID,
                        "job is %s, allowed: a job's number, id or name",
                        spec_read_found(job, found, sizeof(found)));
    return true;
}

bool spec_parse_init(const struct spec_object *train, struct spec_train *out)
{
    static const char *const allowed[] = {"job", "step", "file", "strict", NULL};
    struct spec_object init;
    struct spec_init *into = &out->init;
    *into = (struct spec_init){.step = -1, .strict = true};
    if (!spec_read_object(train, "init", &init) || !init.json)
        return !spec_read_value(train, "init");
    if (!spec_read_only(&init, allowed) || !job_parse(&init, into) ||
        !spec_read_text(&init, "file", INIT_PATH_BYTES, &into->file) ||
        !spec_read_integer(&init, "step", 0, INIT_STEP_MAX, &into->step) ||
        !spec_read_bool(&init, "strict", &into->strict))
        return false;
    if (!into->job == !into->file)
        return error_at(train->err, init.pointer, INVALID,
                        "init has %s, allowed: one of job and file",
                        into->job ? "both job and file" : "neither job nor file");
    if (into->file && !*into->file)
        return error_at(train->err, spec_read_pointer(&init, "file", -1), INVALID,
                        "file is empty, allowed: a path");
    if (into->file && into->step >= 0)
        return error_at(train->err, spec_read_pointer(&init, "step", -1), INVALID,
                        "step goes with job, allowed with file: none (a checkpoint's prefix "
                        "has its step in it)");
    return true;
}
