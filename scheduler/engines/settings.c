/* settings.c - reads and checks what a server is told of its engine. */

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "scheduler/engines/settings.h"

#define FILE_BYTES_MAX (1 << 20)
#define TEXT_BYTES_MAX 4096
#define QUEUE_BYTES_MAX 40 /* of a name: a pod's has more */
#define SECONDS_MAX 31622400
#define CPUS_MAX 100000
#define BYTES_MAX (INT64_C(1) << 50)

/* One object of the file: where it is, and which fields were asked for. */
struct reader {
    json_t *object; /* borrowed */
    char at[128];
    struct arena *arena;
    struct error *err;
    bool failed;
    const char *known[40];
    int known_count;
};

static bool refuse(struct reader *r, const char *field, const char *text)
{
    char pointer[200];
    snprintf(pointer, sizeof(pointer), "%s/%s", r->at, field);
    if (!r->failed)
        error_at(r->err, pointer, INVALID, "%s: %s", pointer, text);
    r->failed = true;
    return false;
}

static json_t *take(struct reader *r, const char *field)
{
    assert(r->known_count < ARRAY_LEN(r->known));
    r->known[r->known_count++] = field;
    return json_object_get(r->object, field);
}

static const char *take_text(struct reader *r, const char *field, const char *otherwise)
{
    json_t *value = take(r, field);
    if (!value)
        return otherwise;
    const char *text = json_string_value(value);
    if (!text || strlen(text) > TEXT_BYTES_MAX || strlen(text) != json_string_length(value)) {
        refuse(r, field, "must be a text of at most 4096 bytes");
        return otherwise;
    }
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ')
            refuse(r, field, "must have no control characters");
    }
    return arena_text(r->arena, text);
}

static int64_t take_number(struct reader *r, const char *field, int64_t otherwise,
                           int64_t least, int64_t most)
{
    json_t *value = take(r, field);
    char text[160];
    if (!value)
        return otherwise;
    int64_t number = json_integer_value(value);
    if (json_is_integer(value) && number >= least && number <= most)
        return number;
    if (json_is_integer(value))
        snprintf(text, sizeof(text), "is %lld; it must be from %lld to %lld", (long long)number,
                 (long long)least, (long long)most);
    else
        snprintf(text, sizeof(text), "must be a whole number from %lld to %lld",
                 (long long)least, (long long)most);
    refuse(r, field, text);
    return otherwise;
}

static const char *const *take_words(struct reader *r, const char *field)
{
    json_t *value = take(r, field);
    size_t count = json_array_size(value);
    const char **words = arena_array(r->arena, SETTINGS_WORDS_MAX + 1, sizeof(*words));
    if (value && (!json_is_array(value) || count > SETTINGS_WORDS_MAX)) {
        refuse(r, field, "must be a list of at most 64 texts");
        return words;
    }
    for (size_t i = 0; i < count; i++) {
        const char *word = json_string_value(json_array_get(value, i));
        if (!word || strlen(word) > TEXT_BYTES_MAX)
            refuse(r, field, "must be a list of texts of at most 4096 bytes");
        words[i] = arena_text(r->arena, word ? word : "");
    }
    return words;
}

static bool name_is_plain(const char *name, size_t most)
{
    size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789._-");
    return size && size <= most && !name[size] && name[0] != '.' && name[0] != '-';
}

/* {"zone": "a"} as labels, and as the words of an agent's option. */
static void take_labels(struct reader *r, struct settings_queue *queue)
{
    json_t *object = take(r, "labels");
    struct str words = {0};
    const char *name;
    json_t *value;
    if (object && (!json_is_object(object) || json_object_size(object) > SETTINGS_WORDS_MAX)) {
        refuse(r, "labels", "must be an object of at most 64 texts");
        object = NULL;
    }
    struct scheduler_label *labels =
        arena_array(r->arena, json_object_size(object) + 1, sizeof(*labels));
    json_object_foreach(object, name, value)
    {
        const char *text = json_string_value(value);
        if (!text || !name_is_plain(name, LIMIT_NAME_BYTES) ||
            !name_is_plain(text, LIMIT_NAME_BYTES)) {
            refuse(r, "labels",
                   "names and values must be letters, digits, '.', '_' and '-', at most 128");
            break;
        }
        labels[queue->like.labels_count++] =
            (struct scheduler_label){arena_text(r->arena, name), arena_text(r->arena, text)};
        str_printf(&words, "%s%s=%s", words.size ? "," : "", name, text);
    }
    queue->like.labels = labels;
    queue->labels = arena_text(r->arena, str_text(&words));
    str_release(&words);
}

static void take_selector(struct reader *r, struct settings_queue *queue)
{
    json_t *object = take(r, "node_selector");
    const char *name;
    json_t *value;
    queue->node_selector = "{}";
    if (object && !json_is_object(object))
        refuse(r, "node_selector", "must be an object of texts");
    json_object_foreach(object, name, value)
    {
        if (!json_is_string(value))
            refuse(r, "node_selector", "must be an object of texts");
    }
    if (r->failed || !object)
        return;
    char *text = json_dumps(object, JSON_COMPACT);
    queue->node_selector = arena_text(r->arena, text);
    free(text);
}

/* What nobody asked for is refused. */
static void only_known(struct reader *r)
{
    const char *name;
    json_t *value;
    json_object_foreach(r->object, name, value)
    {
        bool known = false;
        for (int i = 0; i < r->known_count && !known; i++)
            known = strcmp(r->known[i], name) == 0;
        if (!known) {
            char field[40];
            snprintf(field, sizeof(field), "%.39s", name);
            refuse(r, field, "there is no such field");
            return;
        }
    }
}

static void read_queue(struct reader *r, const char *name, bool slurm,
                       struct settings_queue *queue)
{
    struct pilots_bounds *bounds = &queue->bounds;
    struct scheduler_node_info *like = &queue->like;
    snprintf(bounds->queue, sizeof(bounds->queue), "%s", name);
    bounds->max = (int)take_number(r, "max", 1, 1, PILOTS_PLACES_MAX);
    bounds->min = (int)take_number(r, "min", 0, 0, bounds->max);
    bounds->idle_us = (uint64_t)take_number(r, "idle_seconds", 300, 1, SECONDS_MAX) * 1000000;
    bounds->join_us = (uint64_t)take_number(r, "join_seconds", 600, 1, SECONDS_MAX) * 1000000;
    int64_t cpus = take_number(r, "cpus", 0, 1, CPUS_MAX);
    like->capacity.cpu_millis = cpus * 1000;
    like->capacity.memory_bytes = take_number(r, "memory_bytes", 0, 1 << 20, BYTES_MAX);
    like->capacity.gpus = take_number(r, "gpus", 0, 0, SCHEDULER_GPUS_MAX);
    like->gpu_type = take_text(r, "gpu_type", "");
    like->gpu_memory_bytes = take_number(r, "gpu_memory_bytes", 0, 0, BYTES_MAX);
    if (!cpus)
        refuse(r, "cpus", "is missing: how many CPUs each node lends");
    if (!like->capacity.memory_bytes)
        refuse(r, "memory_bytes", "is missing: how many bytes each node lends");
    if (*like->gpu_type && !name_is_plain(like->gpu_type, LIMIT_NAME_BYTES))
        refuse(r, "gpu_type", "must be letters, digits, '.', '_' and '-'");
    take_labels(r, queue);
    queue->partition = slurm ? take_text(r, "partition", "") : "";
    queue->account = slurm ? take_text(r, "account", "") : "";
    queue->qos = slurm ? take_text(r, "qos", "") : "";
    queue->time_minutes = take_number(r, "time_minutes", 0, 1, SECONDS_MAX / 60);
    queue->options = slurm ? take_words(r, "options") : NULL;
    if (!slurm)
        take_selector(r, queue);
    only_known(r);
}

static void read_queues(struct reader *r, bool slurm, struct settings *settings)
{
    json_t *queues = take(r, "queues");
    const char *name;
    json_t *value;
    int places = 0;
    size_t count = json_object_size(queues);
    if (!json_is_object(queues) || !count || count > SETTINGS_QUEUES_MAX) {
        refuse(r, "queues", "must be an object of 1 to 32 queues");
        return;
    }
    settings->queues = arena_array(r->arena, count, sizeof(*settings->queues));
    json_object_foreach(queues, name, value)
    {
        struct reader one = {.object = value, .arena = r->arena, .err = r->err};
        snprintf(one.at, sizeof(one.at), "/queues/%.100s", name);
        if (!slurm && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name))
            refuse(&one, "", "pods need a queue's name of small letters, digits and '-'");
        else if (!name_is_plain(name, QUEUE_BYTES_MAX))
            refuse(&one, "",
                   "a queue with pilots has a name of letters, digits, '.', '_' and "
                   "'-', 40 at most");
        else if (!json_is_object(value))
            refuse(&one, "", "must be an object");
        else
            read_queue(&one, name, slurm, &settings->queues[settings->queues_count]);
        if (one.failed) {
            r->failed = true;
            return;
        }
        places += settings->queues[settings->queues_count++].bounds.max;
    }
    if (places > PILOTS_PLACES_MAX)
        refuse(r, "queues", "all 'max' together are over 1000");
}

static void read_kubernetes(struct reader *r, struct settings *settings)
{
    static const char account[] = "/var/run/secrets/kubernetes.io/serviceaccount";
    settings->url = take_text(r, "url", "");
    settings->namespace = take_text(r, "namespace", "default");
    settings->token_file =
        take_text(r, "token_file", arena_printf(r->arena, "%s/token", account));
    settings->ca_file = take_text(r, "ca_file", arena_printf(r->arena, "%s/ca.crt", account));
    settings->image = take_text(r, "image", "");
    settings->claim = take_text(r, "claim", "");
    settings->claim_path = take_text(r, "claim_path", "");
    if (!*settings->claim != !*settings->claim_path ||
        (*settings->claim && settings->claim_path[0] != '/'))
        refuse(r, "claim_path", "goes with 'claim', and must be an absolute path");
    if (*settings->url && strncmp(settings->url, "https://", 8) != 0 &&
        strncmp(settings->url, "http://127.", 11) != 0)
        refuse(r, "url",
               "must begin with https:// (http:// on 127.… alone): it is told a token");
    if (!*settings->image)
        refuse(r, "image", "is missing: the container image of the pods");
    if (!name_is_plain(settings->namespace, 63))
        refuse(r, "namespace", "must be letters, digits and '-', 63 at most");
}

static void read_all(struct reader *r, struct settings *settings)
{
    settings->engine = take_text(r, "engine", "");
    bool slurm = strcmp(settings->engine, "slurm") == 0;
    if (!slurm && strcmp(settings->engine, "kubernetes") != 0) {
        refuse(r, "engine", "must be \"slurm\" or \"kubernetes\"");
        return;
    }
    settings->server = take_text(r, "server", "");
    settings->agent = take_text(r, "agent", "/usr/bin/trainyard");
    settings->agent_options = take_words(r, "agent_options");
    settings->folder = take_text(r, "folder", "/tmp");
    settings->poll_ms = take_number(r, "poll_seconds", 5, 1, 600) * 1000;
    settings->grace_s = take_number(r, "grace_seconds", 20, 0, 3600);
    settings->bin = slurm ? take_text(r, "bin", "") : "";
    settings->logs = slurm ? take_text(r, "logs", settings->folder) : "";
    if (settings->folder[0] != '/')
        refuse(r, "folder", "must be an absolute path");
    if (!slurm)
        read_kubernetes(r, settings);
    if (!r->failed)
        read_queues(r, slurm, settings);
    if (!r->failed)
        only_known(r);
}

bool settings_parse(const char *text, size_t size, struct arena *arena,
                    struct settings *settings, struct error *err)
{
    json_error_t where;
    *settings = (struct settings){0};
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
    if (!json_is_object(json)) {
        json_decref(json);
        return json ? fail(err, INVALID, "it must be a JSON object")
                    : fail(err, INVALID, "line %d: %s", where.line, where.text);
    }
    struct reader reader = {.object = json, .arena = arena, .err = err};
    read_all(&reader, settings);
    json_decref(json);
    return !reader.failed;
}

bool settings_read(const char *path, struct arena *arena, struct settings *settings,
                   struct error *err)
{
    char *text = arena_alloc(arena, FILE_BYTES_MAX + 1);
    FILE *file = fopen(path, "re");
    if (!file)
        return error_errno(err, NOT_FOUND, "cannot read %s", path);
    size_t size = fread(text, 1, FILE_BYTES_MAX + 1, file);
    bool bad = ferror(file);
    fclose(file);
    if (bad || size > FILE_BYTES_MAX)
        return fail(err, INVALID, "%s: %s", path,
                    bad ? "cannot be read" : "is larger than 1048576 bytes");
    return settings_parse(text, size, arena, settings, err) || error_prefix(err, "%s: ", path);
}
