/* job_filter.c - the fields of jobs, looked up as far as an expression asks for them. */

#include "server/job_filter.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "db/metrics.h"
#include "runtime/spec/spec_read.h"
#include "server/job.h"
#include "server/request.h"

static const char metrics_prefix[] = "metrics.", spec_prefix[] = "spec.",
                  parameters_prefix[] = "parameters.";

static const char *const text_fields[] = {"id",         "name",       "project",  "queue",
                                          "user",       "state",      "code",     "tags",
                                          "created_at", "started_at", "ended_at", NULL};
static const char *const number_fields[] = {"number",      "priority", "attempt", "restarts",
                                            "preemptions", "array",    "seconds", NULL};
static const char *const truth_fields[] = {"paused", "archived", NULL};

static bool is_in(const char *const *names, const char *name)
{
    for (; *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* What follows a prefix; NULL when the name has not got it, or nothing follows. */
static const char *behind(const char *name, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(name, prefix, size) == 0 && name[size] ? name + size : NULL;
}

static bool known(const char *name, enum filter_kind *kind, struct error *err)
{
    if (behind(name, metrics_prefix) || is_in(number_fields, name))
        *kind = FILTER_NUMBER;
    else if (is_in(text_fields, name))
        *kind = FILTER_TEXT;
    else if (is_in(truth_fields, name))
        *kind = FILTER_TRUTH;
    else if (behind(name, spec_prefix) || behind(name, parameters_prefix))
        *kind = FILTER_ANY;
    else
        return fail(err, INVALID,
                    "jobs have no field '%.60s'; there are id, name, project, queue, user, "
                    "state, code, tags, created_at, started_at, ended_at, number, priority, "
                    "attempt, restarts, preemptions, array, seconds, paused, archived, "
                    "metrics.NAME, spec.PATH, parameters.POINTER",
                    name);
    return true;
}

bool job_filter_read(const struct request *req, struct filter **filter, struct error *err)
{
    const char *text = request_query(req, "filter");
    *filter = text ? filter_parse(req->arena, text, known, err) : NULL;
    return !text || *filter;
}

/* One job, and what was read of it. */
struct row {
    const struct job_reader *reader;
    const struct db_job *job;
    struct arena *arena;
    json_t *spec; /* once it was asked for */
};

static struct filter_value text_value(const char *text)
{
    return (struct filter_value){.kind = text && *text ? FILTER_TEXT : FILTER_NULL,
                                 .text = text};
}

static struct filter_value number_value(double number)
{
    return (struct filter_value){.kind = FILTER_NUMBER, .number = number};
}

static struct filter_value time_value(const struct row *row, int64_t wall_us)
{
    char *text = arena_alloc(row->arena, 32);
    return text_value(wall_us > 0 ? clock_rfc3339((uint64_t)wall_us, text, 32) : NULL);
}

/* A list of texts too; an object is there, and that is all. */
static struct filter_value json_value(const struct row *row, json_t *json)
{
    if (json_is_number(json))
        return number_value(json_number_value(json));
    if (json_is_boolean(json))
        return (struct filter_value){.kind = FILTER_TRUTH, .number = json_is_true(json)};
    if (json_is_string(json))
        return (struct filter_value){.kind = FILTER_TEXT, .text = json_string_value(json)};
    if (!json_is_array(json))
        return (struct filter_value){.kind = FILTER_NULL};
    const char **list = arena_array(row->arena, json_array_size(json) + 1, sizeof(*list));
    struct filter_value value = {.kind = FILTER_TEXT, .list = list};
    size_t index;
    json_t *item;
    json_array_foreach(json, index, item) if (json_is_string(item)) list[value.list_count++] =
        json_string_value(item);
    return value;
}

static bool read_spec(struct row *row, struct error *err)
{
    struct db_job job;
    if (row->spec)
        return true;
    if (!db_jobs_find(row->reader->control, row->job->number, row->arena, &job, err))
        return false;
    row->spec = json_loads(job.spec, 0, NULL);
    return row->spec || fail(err, DATA_LOSS, "the spec of job %lld cannot be read",
                             (long long)row->job->number);
}

/* "train.optimizer.learning_rate", "model.layers.0.units" */
static json_t *find_path(const struct row *row, const char *path)
{
    json_t *at = row->spec;
    while (at && *path) {
        size_t size = strcspn(path, ".");
        const char *name = arena_text_n(row->arena, path, size);
        at = json_is_array(at) ? json_array_get(at, strtoul(name, NULL, 10))
                               : json_object_get(at, name);
        path += size + (path[size] == '.');
    }
    return at;
}

static bool look_up_text(struct row *row, const char *field, struct filter_value *value,
                         struct error *err)
{
    const struct db_job *job = row->job;
    const struct {
        const char *name;
        const char *text;
    } texts[] = {{"id", job->id},           {"name", job->name},
                 {"project", job->project}, {"queue", job->queue},
                 {"user", job->user},       {"state", db_job_state_name(job->state)},
                 {"code", job->reason}};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strcmp(field, texts[i].name) == 0)
            *value = text_value(texts[i].text);
    if (strcmp(field, "created_at") == 0)
        *value = time_value(row, job->created_us);
    else if (strcmp(field, "started_at") == 0)
        *value = time_value(row, job->started_us);
    else if (strcmp(field, "ended_at") == 0)
        *value = time_value(row, job->ended_us);
    else if (strcmp(field, "tags") == 0 && read_spec(row, err))
        *value = json_value(row, json_object_get(row->spec, "tags"));
    return strcmp(field, "tags") != 0 || row->spec;
}

/* How long it has run, or ran, from its first start. */
static struct filter_value seconds_of(const struct db_job *job)
{
    int64_t end_us = job->ended_us ? job->ended_us : (int64_t)clock_wall_us();
    return job->started_us ? number_value((double)(end_us - job->started_us) / 1e6)
                           : (struct filter_value){.kind = FILTER_NULL};
}

static void look_up_number(const struct db_job *job, const char *field,
                           struct filter_value *value)
{
    const struct {
        const char *name;
        double number;
    } numbers[] = {{"number", (double)job->number},   {"priority", job->priority},
                   {"attempt", job->attempt},         {"restarts", job->restarts},
                   {"preemptions", job->preemptions}, {"array", (double)job->array}};
    if (strcmp(field, "seconds") == 0)
        *value = seconds_of(job);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (strcmp(field, numbers[i].name) == 0)
            *value = number_value(numbers[i].number);
}

static bool look_up_metric(const struct row *row, const char *name, struct filter_value *value,
                           struct error *err)
{
    bool found;
    value->kind = FILTER_NUMBER;
    if (!db_metrics_last(row->reader->metrics, row->job->number, name, &value->number, &found,
                         err))
        return false;
    if (!found)
        value->kind = FILTER_NULL;
    return true;
}

static bool look_up(void *self, const char *field, struct filter_value *value,
                    struct error *err)
{
    struct row *row = self;
    const char *rest;
    if ((rest = behind(field, metrics_prefix)))
        return look_up_metric(row, rest, value, err);
    if ((rest = behind(field, spec_prefix))) {
        if (!read_spec(row, err))
            return false;
        *value = json_value(row, find_path(row, rest));
        return true;
    }
    if ((rest = behind(field, parameters_prefix))) {
        json_t *parameters = json_loads(row->job->parameters, 0, NULL);
        *value = json_value(row, json_object_get(parameters, rest));
        if (value->text)
            value->text = arena_text(row->arena, value->text);
        json_decref(parameters);
        return true;
    }
    if (is_in(truth_fields, field)) {
        bool paused = strcmp(field, "paused") == 0;
        *value = (struct filter_value){
            .kind = FILTER_TRUTH, .number = paused ? row->job->paused : row->job->archived};
        return true;
    }
    look_up_number(row->job, field, value);
    return look_up_text(row, field, value, err);
}

bool job_filter_match(const struct filter *filter, const struct job_reader *reader,
                      const struct db_job *job, bool *matches, struct error *err)
{
    *matches = true;
    if (!filter)
        return true;
    struct row row = {.reader = reader, .job = job, .arena = arena_new()};
    bool ok = filter_match(filter, look_up, &row, matches, err);
    json_decref(row.spec);
    arena_free(row.arena);
    return ok;
}
