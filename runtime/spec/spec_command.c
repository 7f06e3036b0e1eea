/* spec_command.c - a job that is any program: its words, environment, secrets and files. */

#include "base/arena.h"
#include "base/limits.h"
#include "base/path.h"
#include "base/str.h"
#include "runtime/spec/spec_internal.h"

#define WORDS_MAX 1000
#define WORD_BYTES 65536
#define VARIABLES_MAX 256
#define VARIABLE_BYTES 65536
#define SECRETS_MAX 64
#define FILES_MAX 1000
#define SHA256_DIGITS 64

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
static const char digits[] = "0123456789";

/* --- what runs --- */

static bool words_parse(const struct spec_object *whole, struct spec_command *out)
{
    char found[SPEC_FOUND_BYTES];
    json_t *list = spec_read_value(whole, "command");
    size_t count = json_array_size(list);
    if (!count || count > WORDS_MAX)
        return error_at(whole->err, "/command", INVALID,
                        "command is %s, allowed: a list of 1 to %d words, the program first",
                        spec_read_found(list, found, sizeof(found)), WORDS_MAX);
    const char **words = arena_array(whole->arena, count, sizeof(*words));
    for (size_t i = 0; i < count; i++) {
        json_t *word = json_array_get(list, i);
        if (!json_is_string(word) || json_string_length(word) > WORD_BYTES ||
            (i == 0 && !json_string_length(word)))
            return error_at(whole->err, spec_read_pointer(whole, "command", (int)i), INVALID,
                            "a word is %s, allowed: text of at most %d bytes%s",
                            spec_read_found(word, found, sizeof(found)), WORD_BYTES,
                            i ? "" : ", the program's name not empty");
        words[out->words_count++] = arena_text(whole->arena, json_string_value(word));
    }
    out->words = words;
    return true;
}

/* --- variables and secrets --- */

static bool is_word(const char *name)
{
    size_t size = strlen(name), start = strspn(name, letters);
    bool known = start > 0 && size <= LIMIT_NAME_BYTES;
    for (size_t i = 0; i < size && known; i++)
        known = strchr(letters, name[i]) || strchr(digits, name[i]);
    return known;
}

static bool is_ours(const char *name)
{
    return strncmp(name, "TRAINYARD_", 10) == 0;
}

bool spec_is_variable(const char *name)
{
    return is_word(name) && !is_ours(name);
}

static bool name_check(const struct spec_object *object, const char *name)
{
    if (!is_word(name))
        return error_at(object->err, spec_read_pointer(object, name, -1), INVALID,
                        "\"%.60s\" cannot name a variable, allowed: 1 to %d of the letters A-Z "
                        "a-z 0-9 _, no digit first",
                        name, LIMIT_NAME_BYTES);
    if (is_ours(name))
        return error_at(object->err, spec_read_pointer(object, name, -1), INVALID,
                        "%s: names that begin with TRAINYARD_ are the platform's own", name);
    return true;
}

/* An object of NAME: text. */
static bool variables_parse(const struct spec_object *object, int max,
                            const struct spec_variable **out, int *count)
{
    size_t size = json_object_size(object->json);
    struct spec_variable *list = arena_array(object->arena, size + 1, sizeof(*list));
    if (size > (size_t)max)
        return error_at(object->err, object->pointer, INVALID, "%zu names, allowed: at most %d",
                        size, max);
    const char *name;
    json_t *value;
    json_object_foreach(object->json, name, value)
    {
        char found[SPEC_FOUND_BYTES];
        if (!name_check(object, name))
            return false;
        if (!json_is_string(value) || json_string_length(value) > VARIABLE_BYTES)
            return error_at(object->err, spec_read_pointer(object, name, -1), INVALID,
                            "%s is %s, allowed: text of at most %d bytes", name,
                            json_is_string(value)
                                ? "longer text"
                                : spec_read_found(value, found, sizeof(found)),
                            VARIABLE_BYTES);
        list[(*count)++] =
            (struct spec_variable){arena_text(object->arena, name),
                                   arena_text(object->arena, json_string_value(value))};
    }
    *out = list;
    return true;
}

/* An object of NAME: "file" or "env". */
static bool secrets_parse(const struct spec_object *whole, struct spec_command *out)
{
    char found[SPEC_FOUND_BYTES];
    struct spec_object object;
    if (!spec_read_object(whole, "secrets", &object))
        return false;
    size_t size = json_object_size(object.json);
    struct spec_secret *list = arena_array(whole->arena, size + 1, sizeof(*list));
    if (size > SECRETS_MAX)
        return error_at(whole->err, "/secrets", INVALID, "%zu secrets, allowed: at most %d",
                        size, SECRETS_MAX);
    const char *name;
    json_t *value;
    json_object_foreach(object.json, name, value)
    {
        const char *way = json_is_string(value) ? json_string_value(value) : "";
        bool in_env = strcmp(way, "env") == 0;
        if (!name_check(&object, name))
            return false;
        if (!in_env && strcmp(way, "file") != 0)
            return error_at(whole->err, spec_read_pointer(&object, name, -1), INVALID,
                            "%s is %s, allowed: how the program is told it, \"file\" (its "
                            "path is in $%s_FILE) or \"env\" (in $%s, too)",
                            name, spec_read_found(value, found, sizeof(found)), name, name);
        for (int i = 0; i < out->env_count; i++) {
            if (in_env && strcmp(out->env[i].name, name) == 0)
                return error_at(whole->err, spec_read_pointer(&object, name, -1), INVALID,
                                "%s is a variable of env already", name);
        }
        list[out->secrets_count++] =
            (struct spec_secret){arena_text(whole->arena, name), in_env};
    }
    out->secrets = list;
    return true;
}

/* --- files --- */

static bool files_parse(const struct spec_object *whole, struct spec_command *out)
{
    char found[SPEC_FOUND_BYTES];
    struct spec_object object;
    if (!spec_read_object(whole, "files", &object))
        return false;
    size_t size = json_object_size(object.json);
    struct spec_file *list = arena_array(whole->arena, size + 1, sizeof(*list));
    if (size > FILES_MAX)
        return error_at(whole->err, "/files", INVALID, "%zu files, allowed: at most %d", size,
                        FILES_MAX);
    const char *path;
    json_t *value;
    json_object_foreach(object.json, path, value)
    {
        const char *hash = json_string_value(value);
        if (!path_is_below(path))
            return error_at(whole->err, spec_read_pointer(&object, path, -1), INVALID,
                            "\"%.100s\" cannot name a file of a job, allowed: a path below its "
                            "folder, without \"..\"",
                            path);
        if (!hash || strlen(hash) != SHA256_DIGITS ||
            strspn(hash, "0123456789abcdef") != SHA256_DIGITS)
            return error_at(whole->err, spec_read_pointer(&object, path, -1), INVALID,
                            "%.100s is %s, allowed: the SHA-256 of an uploaded file, 64 digits",
                            path, spec_read_found(value, found, sizeof(found)));
        list[out->files_count++] =
            (struct spec_file){arena_text(whole->arena, path), arena_text(whole->arena, hash)};
    }
    out->files = list;
    return true;
}

static bool workdir_parse(const struct spec_object *whole, struct spec_command *out)
{
    if (!spec_read_text(whole, "workdir", PATH_BYTES_MAX, &out->workdir) || !out->workdir)
        return !spec_read_value(whole, "workdir");
    if (out->workdir[0] != '/' || strpbrk(out->workdir, "\n\t"))
        return error_at(
            whole->err, "/workdir", INVALID,
            "workdir is \"%.100s\", allowed: the whole path of a folder on the node",
            out->workdir);
    if (out->files_count)
        return error_at(whole->err, "/workdir", INVALID,
                        "allowed: one of workdir, a folder on the node, and files, which are "
                        "put into a new one");
    return true;
}

/* --- the whole --- */

/* A job without a name is called like its script, or else its program. */
static const char *name_of(const struct spec_command *command, struct arena *arena)
{
    const char *word = command->words[0];
    if (command->words_count > 1 && command->words[1][0] != '-' &&
        strchr(command->words[1], '.') && !strpbrk(command->words[1], " \n"))
        word = command->words[1];
    const char *slash = strrchr(word, '/');
    char *name = arena_text(arena, slash && slash[1] ? slash + 1 : word);
    for (char *c = name; *c; c++) {
        if (!strchr(letters, *c) && !strchr(digits, *c) && *c != '.' && *c != '-')
            *c = '_';
    }
    if (strlen(name) > LIMIT_NAME_BYTES)
        name[LIMIT_NAME_BYTES] = '\0';
    return spec_is_name(name) ? name : "command";
}

/* What only a model has. */
static bool refuse_model(const struct spec_object *whole, const char *kind)
{
    static const char *const fields[] = {"model",    "data",       "train",
                                         "strategy", "checkpoint", "trace"};
    for (int i = 0; i < ARRAY_LEN(fields); i++) {
        if (spec_read_value(whole, fields[i]))
            return error_at(whole->err, spec_read_pointer(whole, fields[i], -1), INVALID,
                            "%s belongs to a model; a job with a \"%s\" has none", fields[i],
                            kind);
    }
    return true;
}

bool spec_parse_bare(const struct spec_object *whole, const char *kind, struct spec *spec)
{
    /* A cluster that nobody asks anything writes nothing. */
    static const char *const fields[] = {"max_seconds", "stall_seconds", NULL};
    static const char *const cluster_fields[] = {"max_seconds", NULL};
    const char *const *stop_fields = strcmp(kind, "cluster") ? fields : cluster_fields;
    struct spec_object tasks, stop;
    return refuse_model(whole, kind) && spec_read_object(whole, "tasks", &tasks) &&
           spec_parse_tasks(&tasks, spec) && spec_parse_placement(whole, spec) &&
           spec_parse_restart(whole, spec) && spec_read_object(whole, "stop", &stop) &&
           (!stop.json || spec_read_only(&stop, stop_fields)) &&
           spec_parse_seconds(&stop, spec);
}

bool spec_parse_command(const struct spec_object *whole, struct spec *spec)
{
    struct spec_command *out = &spec->command;
    struct spec_object env;
    if (!spec_parse_bare(whole, "command", spec) || !words_parse(whole, out) ||
        !spec_read_object(whole, "env", &env) ||
        !variables_parse(&env, VARIABLES_MAX, &out->env, &out->env_count) ||
        !secrets_parse(whole, out) || !files_parse(whole, out) || !workdir_parse(whole, out))
        return false;
    if (!spec->name)
        spec->name = name_of(out, whole->arena);
    return true;
}

static void add_text(struct str *out, const char *text)
{
    str_add_json(out, text, strlen(text));
}

static void add_pair(struct str *out, bool first, const char *name, const char *value)
{
    str_add(out, first ? "" : ", ");
    add_text(out, name);
    str_add(out, ": ");
    add_text(out, value);
}

void spec_command_write(const struct spec_command *command, struct str *out)
{
    str_add(out, " \"command\": [");
    for (int i = 0; i < command->words_count; i++) {
        str_add(out, i ? ", " : "");
        add_text(out, command->words[i]);
    }
    str_add(out, "],\n \"env\": {");
    for (int i = 0; i < command->env_count; i++)
        add_pair(out, i == 0, command->env[i].name, command->env[i].value);
    str_add(out, "},\n");
    if (command->secrets_count)
        str_add(out, " \"secrets\": {");
    for (int i = 0; i < command->secrets_count; i++)
        add_pair(out, i == 0, command->secrets[i].name,
                 command->secrets[i].in_env ? "env" : "file");
    str_add(out, command->secrets_count ? "},\n" : "");
    if (command->files_count)
        str_add(out, " \"files\": {");
    for (int i = 0; i < command->files_count; i++)
        add_pair(out, i == 0, command->files[i].path, command->files[i].sha256);
    str_add(out, command->files_count ? "},\n" : "");
    if (command->workdir) {
        str_add(out, " \"workdir\": ");
        add_text(out, command->workdir);
        str_add(out, ",\n");
    }
}
