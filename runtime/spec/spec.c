/* spec.c - a job spec as a whole: syntax, the fields at its top, and its sections in order. */

#include "runtime/spec/spec.h"

#include "base/arena.h"
#include "base/limits.h"
#include "runtime/spec/spec_internal.h"

#define SPEC_TAGS_MAX 32
#define SPEC_NOTES_BYTES 10000
#define SPEC_SEED_MAX INT64_C(9007199254740991) /* what every JSON reader keeps exact */

bool spec_is_name(const char *name)
{
    size_t size = strlen(name);
    if (!size || size > LIMIT_NAME_BYTES || !strcmp(name, ".") || !strcmp(name, ".."))
        return false;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
           size;
}

/* --- syntax --- */

/* Bounds depth and size before the parser, which recurses, sees the text. */
static bool check_size(const char *text, size_t size, struct error *err)
{
    if (size > LIMIT_HTTP_BODY_BYTES)
        return fail(err, EXHAUSTED, "the spec has %zu bytes, allowed: at most %d", size,
                    LIMIT_HTTP_BODY_BYTES);
    int depth = 0, members = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (quoted) {
            if (c == '\\')
                i++;
            else if (c == '"')
                quoted = false;
            continue;
        }
        quoted = c == '"';
        depth += (c == '{' || c == '[') - (c == '}' || c == ']');
        members += c == ',';
        if (depth > LIMIT_JSON_DEPTH)
            return fail(err, EXHAUSTED, "the spec nests deeper than %d levels",
                        LIMIT_JSON_DEPTH);
        if (members > LIMIT_JSON_MEMBERS)
            return fail(err, EXHAUSTED, "the spec has more than %d values", LIMIT_JSON_MEMBERS);
    }
    return true;
}

json_t *spec_load(const char *text, size_t size, struct error *err)
{
    if (!check_size(text, size, err))
        return NULL;
    json_error_t problem;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    if (!json)
        return fail_null(err, INVALID, "not JSON: line %d, column %d: %s", problem.line,
                         problem.column, problem.text);
    if (!json_is_object(json)) {
        char found[SPEC_FOUND_BYTES];
        spec_read_found(json, found, sizeof(found));
        json_decref(json);
        return fail_null(err, INVALID, "the spec is %s, allowed: an object", found);
    }
    return json;
}

/* --- the top --- */

static const char *const top_fields[] = {
    "version",   "name",       "project", "queue", "tags",    "seed",  "notes",
    "priority",  "after",      "example", "model", "data",    "train", "command",
    "cluster",   "env",        "secrets", "files", "workdir", "tasks", "strategy",
    "placement", "checkpoint", "restart", "stop",  "trace",   "array", NULL};

static bool tags_parse(const struct spec_object *whole, struct spec *spec)
{
    json_t *list = spec_read_value(whole, "tags");
    if (!list)
        return true;
    char found[SPEC_FOUND_BYTES];
    if (!json_is_array(list) || json_array_size(list) > SPEC_TAGS_MAX)
        return error_at(whole->err, "/tags", INVALID,
                        "tags is %s, allowed: a list of at most %d",
                        spec_read_found(list, found, sizeof(found)), SPEC_TAGS_MAX);
    const char **tags = arena_array(whole->arena, json_array_size(list) + 1, sizeof(*tags));
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *tag = json_array_get(list, i);
        if (!json_is_string(tag) || !spec_is_name(json_string_value(tag)))
            return error_at(whole->err, spec_read_pointer(whole, "tags", (int)i), INVALID,
                            "a tag is %s, allowed: 1 to 128 of the letters A-Z a-z 0-9 . _ -",
                            spec_read_found(tag, found, sizeof(found)));
        tags[spec->tags_count++] = arena_text(whole->arena, json_string_value(tag));
    }
    spec->tags = tags;
    return true;
}

/* Jobs by their numbers, ids or names; whether there are such the server knows. */
static bool after_parse(const struct spec_object *whole, struct spec *spec)
{
    json_t *list = spec_read_value(whole, "after"), *item;
    char found[SPEC_FOUND_BYTES];
    size_t index;
    if (list && (!json_is_array(list) || json_array_size(list) > SPEC_AFTER_MAX))
        return error_at(whole->err, "/after", INVALID,
                        "after is %s, allowed: a list of at most %d jobs",
                        spec_read_found(list, found, sizeof(found)), SPEC_AFTER_MAX);
    const char **after = arena_array(whole->arena, json_array_size(list) + 1, sizeof(*after));
    json_array_foreach(list, index, item)
    {
        if (json_is_integer(item) && json_integer_value(item) > 0)
            after[index] =
                arena_printf(whole->arena, "%lld", (long long)json_integer_value(item));
        else if (json_is_string(item) && spec_is_name(json_string_value(item)))
            after[index] = arena_text(whole->arena, json_string_value(item));
        else
            return error_at(whole->err, spec_read_pointer(whole, "after", (int)index), INVALID,
                            "a job is %s, allowed: its number, id or name",
                            spec_read_found(item, found, sizeof(found)));
    }
    spec->after = after;
    spec->after_count = (int)json_array_size(list);
    return true;
}

static bool identity_parse(const struct spec_object *whole, struct spec *spec)
{
    int64_t version = 1, priority = 50;
    spec->project = spec->queue = "default";
    spec->notes = "";
    if (!spec_read_integer(whole, "version", 1, 1, &version) ||
        !spec_read_name(whole, "name", &spec->name) ||
        !spec_read_name(whole, "project", &spec->project) ||
        !spec_read_name(whole, "queue", &spec->queue) ||
        !spec_read_text(whole, "notes", SPEC_NOTES_BYTES, &spec->notes) ||
        !spec_read_integer(whole, "priority", 0, 100, &priority) ||
        !spec_read_integer(whole, "seed", 0, SPEC_SEED_MAX, &spec->seed))
        return false;
    spec->priority = (int)priority;
    return tags_parse(whole, spec) && after_parse(whole, spec);
}

/* One spec is one job; who makes jobs has taken the array apart (spec_array.c). */
static bool refuse_array(const struct spec_object *whole)
{
    return !spec_read_value(whole, "array") ||
           error_at(whole->err, "/array", INVALID,
                    "an array is many jobs, which a server makes: trainyard submit");
}

/* What only a program has. */
static bool refuse_without_command(const struct spec_object *whole)
{
    static const char *const fields[] = {"env", "secrets", "files", "workdir"};
    for (int i = 0; i < ARRAY_LEN(fields); i++) {
        if (spec_read_value(whole, fields[i]))
            return error_at(whole->err, spec_read_pointer(whole, fields[i], -1), INVALID,
                            "%s belongs to a \"command\", which this spec does not have",
                            fields[i]);
    }
    return true;
}

static bool sections_parse(const struct spec_object *whole, struct spec *spec)
{
    struct spec_object model, data, train, tasks;
    if (!spec_read_only(whole, top_fields) || !refuse_array(whole) ||
        !identity_parse(whole, spec))
        return false;
    if (spec_read_value(whole, "command") && !spec_read_value(whole, "cluster"))
        return spec_parse_command(whole, spec);
    if (!refuse_without_command(whole))
        return false;
    if (spec_read_value(whole, "cluster"))
        return spec_parse_cluster(whole, spec);
    if (!spec_read_required(whole, "model", "{\"layers\": [...]}, or name an \"example\"") ||
        !spec_read_required(whole, "data", "{\"dataset\": NAME}") ||
        !spec_read_object(whole, "model", &model) || !spec_read_object(whole, "data", &data) ||
        !spec_read_object(whole, "train", &train) || !spec_read_object(whole, "tasks", &tasks))
        return false;
    if (!spec_parse_model(&model, spec) || !spec_parse_data(&data, spec) ||
        !spec_parse_train(&train, spec) || !spec_parse_tasks(&tasks, spec) ||
        !spec_parse_run(whole, spec))
        return false;
    if (!spec->name)
        spec->name = spec->data.dataset;
    return true;
}

const struct spec *spec_parse(struct arena *arena, const char *text, size_t size,
                              struct error *err)
{
    json_t *document = spec_load(text, size, err);
    if (!document)
        return NULL;
    json_t *merged = spec_example_merge(document, err);
    json_decref(document);
    if (!merged)
        return NULL;
    struct spec *spec = arena_alloc(arena, sizeof(*spec));
    struct spec_object whole = {merged, "", arena, err};
    bool ok = sections_parse(&whole, spec);
    json_decref(merged);
    return ok ? spec : NULL;
}

const struct spec *spec_parse_training(struct arena *arena, const char *text, size_t size,
                                       struct error *err)
{
    const struct spec *spec = spec_parse(arena, text, size, err);
    if (!spec || (!spec->command.words_count && !spec->idle_seconds))
        return spec;
    bool program = spec->command.words_count > 0;
    error_at(err, program ? "/command" : "/cluster", INVALID,
             "the job %s: there is no model to train. A server runs it: trainyard submit",
             program ? "runs a command" : "is a cluster for TensorFlow's clients");
    return NULL;
}
