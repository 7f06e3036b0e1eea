/* cluster_spec.c - reads cluster specs. */

#include "task/cluster_spec.h"

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/str.h"

#define TASKS_MAX 10000

static bool is_job_name(const char *name)
{
    if (!*name || strlen(name) > 60)
        return false;
    for (const char *at = name; *at; at++) {
        bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_';
        if (!letter && (at == name || *at < '0' || *at > '9'))
            return false;
    }
    return true;
}

static bool is_address(const char *text)
{
    const char *colon = strrchr(text, ':');
    char *end;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    return colon && colon != text && colon[1] && !*end && port > 0 && port < 65536 &&
           strlen(text) < 256;
}

static bool read_job(const char *name, const json_t *list, struct arena *arena,
                     struct cluster_job *job, struct error *err)
{
    size_t count = json_array_size(list);
    if (!is_job_name(name))
        return fail(err, INVALID, "\"%.60s\" is no name of a job: letters, digits and _", name);
    if (!json_is_array(list) || !count || count > TASKS_MAX)
        return fail(err, INVALID,
                    "job \"%s\" needs a list of 1 to %d addresses of tasks: [\"host:port\", …]",
                    name, TASKS_MAX);
    *job = (struct cluster_job){.name = arena_text(arena, name),
                                .addresses = arena_array(arena, count, sizeof(char *)),
                                .tasks_count = (int)count};
    for (size_t i = 0; i < count; i++) {
        const char *address = json_string_value(json_array_get(list, i));
        if (!address || !is_address(address))
            return fail(err, INVALID, "task %zu of job \"%s\": \"%.100s\" is no host:port", i,
                        name, address ? address : "");
        job->addresses[i] = arena_text(arena, address);
    }
    return true;
}

/* Two tasks at one address would both get what is meant for one of them. */
static bool check_once(const struct cluster_spec *spec, struct arena *arena, struct error *err)
{
    struct map *seen = map_new();
    bool ok = true;
    for (int i = 0; ok && i < spec->jobs_count; i++) {
        const struct cluster_job *job = &spec->jobs[i];
        for (int t = 0; ok && t < job->tasks_count; t++) {
            const char *other = map_find(seen, job->addresses[t]);
            if (other)
                ok = fail(err, INVALID,
                          "task %d of job \"%s\" has the address of %s, %s: each needs a port "
                          "of its own",
                          t, job->name, other, job->addresses[t]);
            else
                map_set(seen, job->addresses[t],
                        arena_printf(arena, "task %d of job \"%s\"", t, job->name));
        }
    }
    map_free(seen);
    return ok;
}

static bool read_jobs(const json_t *json, struct arena *arena, struct cluster_spec *spec,
                      struct error *err)
{
    const char *name;
    json_t *list;
    if (!json_is_object(json) || !json_object_size(json))
        return fail(err, INVALID,
                    "a cluster is {\"worker\": [\"host:port\", …], …}, with a job at least");
    if (json_object_size(json) > CLUSTER_JOBS_MAX)
        return fail(err, EXHAUSTED, "a cluster of %zu jobs; at most %d", json_object_size(json),
                    CLUSTER_JOBS_MAX);
    json_object_foreach((json_t *)json, name, list)
    {
        if (!read_job(name, list, arena, &spec->jobs[spec->jobs_count], err))
            return false;
        spec->jobs_count++;
    }
    return check_once(spec, arena, err);
}

bool cluster_spec_read(const char *file, struct arena *arena, struct cluster_spec *spec,
                       struct error *err)
{
    json_error_t problem;
    json_t *json = *file == '{' ? json_loads(file, JSON_REJECT_DUPLICATES, &problem)
                                : json_load_file(file, JSON_REJECT_DUPLICATES, &problem);
    *spec = (struct cluster_spec){.task = -1};
    if (!json)
        return fail(err, INVALID, "the cluster %.200s: line %d: %s", file, problem.line,
                    problem.text);
    bool ok = read_jobs(json, arena, spec, err);
    json_decref(json);
    return ok || error_prefix(err, "the cluster %.200s: ", file);
}

bool cluster_spec_read_config(const char *text, struct arena *arena, struct cluster_spec *spec,
                              struct error *err)
{
    json_error_t problem;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &problem);
    *spec = (struct cluster_spec){.task = -1};
    if (!json)
        return fail(err, INVALID, "TF_CONFIG: line %d: %s", problem.line, problem.text);
    bool ok = read_jobs(json_object_get(json, "cluster"), arena, spec, err);
    const json_t *task = json_object_get(json, "task");
    const char *type = json_string_value(json_object_get(task, "type"));
    const json_t *index = json_object_get(task, "index");
    if (ok && type)
        spec->job = arena_text(arena, type);
    if (ok && json_is_integer(index) && json_integer_value(index) >= 0 &&
        json_integer_value(index) < TASKS_MAX)
        spec->task = (int)json_integer_value(index);
    json_decref(json);
    return ok || error_prefix(err, "TF_CONFIG: ");
}

int cluster_spec_tasks(const struct cluster_spec *spec)
{
    int count = 0;
    for (int i = 0; i < spec->jobs_count; i++)
        count += spec->jobs[i].tasks_count;
    return count;
}

const char *cluster_spec_address(const struct cluster_spec *spec, const char *job, int task,
                                 struct error *err)
{
    struct str there = {0};
    const char *found = NULL;
    for (int i = 0; i < spec->jobs_count; i++) {
        const struct cluster_job *one = &spec->jobs[i];
        if (!strcmp(one->name, job) && task >= 0 && task < one->tasks_count)
            found = one->addresses[task];
        str_printf(&there, "%s%s of %d task%s", i ? ", " : "", one->name, one->tasks_count,
                   one->tasks_count == 1 ? "" : "s");
    }
    if (!found)
        fail(err, INVALID, "task %d of job \"%.60s\" is not in the cluster, which has: %s",
             task, job, str_text(&there));
    str_release(&there);
    return found;
}
