/* program.c - what a program finds when it starts. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/program.h"
#include "scheduler/agent/words.h"

/* --- folders --- */

static json_t *variables_json(const struct agent_variable *variables, int count)
{
    json_t *json = json_object();
    for (int i = 0; i < count; i++)
        json_object_set_new(json, variables[i].name, json_string(variables[i].value));
    return json;
}

json_t *program_json(const struct agent_program *program)
{
    json_t *words = json_array(), *files = json_object(), *secrets = json_object();
    for (int i = 0; i < program->words_count; i++)
        json_array_append_new(words, json_string(program->words[i]));
    for (int i = 0; i < program->files_count; i++)
        json_object_set_new(files, program->files[i].path,
                            json_string(program->files[i].sha256));
    for (int i = 0; i < program->secrets_count; i++)
        json_object_set_new(secrets, program->secrets[i].name,
                            json_string(program->secrets[i].in_env ? "env" : "file"));
    return json_pack("{s:o, s:o, s:o, s:o, s:s, s:i}", "words", words, "variables",
                     variables_json(program->variables, program->variables_count), "files",
                     files, "secrets", secrets, "folder", program->folder, "tasks",
                     program->tasks);
}

static bool secret_write(const char *folder, const struct agent_secret *secret,
                         struct error *err)
{
    char *path = alloc_printf("%s/" PROGRAM_SECRETS "/%s", folder, secret->name);
    size_t size = strlen(secret->value), done = 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    while (fd >= 0 && done < size) {
        ssize_t n = write(fd, secret->value + done, size - done);
        if (n < 0 && errno != EINTR)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    bool ok = fd >= 0 && done == size;
    if (!ok)
        error_errno(err, INTERNAL, "cannot write the secret %s", secret->name);
    if (fd >= 0)
        close(fd);
    free(path);
    return ok;
}

bool program_make(const char *folder, const struct agent_program *program, struct error *err)
{
    static const char *const names[] = {PROGRAM_WORK, PROGRAM_ARTIFACTS, PROGRAM_SECRETS};
    bool ok = true;
    for (int i = 0; i < ARRAY_LEN(names) && ok; i++) {
        char *path = alloc_printf("%s/%s", folder, names[i]);
        ok = files_make_folder(path, err);
        free(path);
    }
    for (int i = 0; i < program->secrets_count && ok; i++) {
        const char *name = program->secrets[i].name;
        ok = *name && !strchr(name, '/') && *name != '.'
                 ? secret_write(folder, &program->secrets[i], err)
                 : fail(err, INVALID, "'%.60s' cannot name a secret", name);
    }
    return ok;
}

/* --- running --- */

const char *program_folder(const json_t *start)
{
    const char *given = files_text(json_object_get(start, "program"), "folder");
    return *given ? given : PROGRAM_WORK;
}

void program_command(struct words *words, const json_t *start)
{
    size_t i;
    json_t *word;
    json_array_foreach(json_object_get(json_object_get(start, "program"), "words"), i, word)
    {
        words_add(words, json_string_value(word));
    }
}

/* TensorFlow's: {"cluster": {role: [address...]}, "task": {"type": role, "index": n}}. */
static char *tf_config(const json_t *start)
{
    json_t *roles = json_object();
    size_t i;
    json_t *task;
    json_array_foreach(json_object_get(start, "cluster"), i, task)
    {
        json_t *list = json_object_get(roles, files_text(task, "role"));
        if (!list) {
            list = json_array();
            json_object_set_new(roles, files_text(task, "role"), list);
        }
        json_array_append(list, json_object_get(task, "address"));
    }
    json_t *config =
        json_pack("{s:o, s:{s:s, s:I}}", "cluster", roles, "task", "type",
                  files_text(start, "role"), "index", (json_int_t)files_int(start, "index"));
    char *text = json_dumps(config, JSON_COMPACT);
    json_decref(config);
    return text;
}

void program_add_cluster(struct words *words, const json_t *start)
{
    char *config = tf_config(start);
    words_variable(words, "TF_CONFIG", config ? config : "{}");
    free(config);
}

/* Whether a task is one of equals, who count themselves through: ps and evaluators serve. */
static bool has_rank(const char *role)
{
    return strcmp(role, "chief") == 0 || strcmp(role, "worker") == 0;
}

/*
 * RANK and the like, as torch.distributed and others want them: a chief first, then workers.
 * A task has its own GPUs, numbered from 0, so each is the first of its own machine.
 */
static void add_ranks(struct words *words, const json_t *start)
{
    const char *role = files_text(start, "role");
    int rank = -1, chiefs = 0, world = 0;
    const json_t *first = NULL;
    size_t i;
    json_t *task;
    json_array_foreach(json_object_get(start, "cluster"), i, task)
    {
        bool chief = strcmp(files_text(task, "role"), "chief") == 0;
        world += has_rank(files_text(task, "role"));
        chiefs += chief;
        if (files_int(task, "index") == 0 && has_rank(files_text(task, "role")) &&
            (!first || chief))
            first = task;
    }
    if (first) {
        char *address = alloc_text(files_text(first, "address"));
        char *colon = strrchr(address, ':');
        if (colon) {
            *colon = '\0';
            words_variable(words, "MASTER_ADDR", address);
            words_variable(words, "MASTER_PORT", colon + 1);
        }
        free(address);
    }
    if (!has_rank(role))
        return;
    rank = (int)files_int(start, "index") + (strcmp(role, "chief") == 0 ? 0 : chiefs);
    words_variable_int(words, "RANK", rank);
    words_variable_int(words, "WORLD_SIZE", world);
    words_variable_int(words, "LOCAL_RANK", 0);
    words_variable_int(words, "LOCAL_WORLD_SIZE", 1);
}

static void add_gpus(struct words *words, const json_t *start)
{
    char *text = alloc_text("");
    size_t i;
    json_t *gpu;
    const json_t *uuids = json_object_get(start, "gpu_uuids");
    bool known = json_array_size(uuids) > 0;
    json_array_foreach(known ? uuids : json_object_get(start, "gpu_ids"), i, gpu)
    {
        const char *comma = i ? "," : "";
        char *more =
            known ? alloc_printf("%s%s%s", text, comma, json_string_value(gpu))
                  : alloc_printf("%s%s%lld", text, comma, (long long)json_integer_value(gpu));
        free(text);
        text = more;
    }
    words_variable(words, "CUDA_VISIBLE_DEVICES", text);
    free(text);
}

/* NAME=value, the value from its file. */
static bool secret_read(struct words *words, const char *name, const char *path,
                        struct error *err)
{
    struct stat info;
    size_t size = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &info) == 0;
    char *value = arena_alloc(words->arena, ok ? (size_t)info.st_size + 1 : 1);
    while (ok && n && size < (size_t)info.st_size) {
        n = read(fd, value + size, (size_t)info.st_size - size);
        ok = n >= 0 || errno == EINTR;
        size += n > 0 ? (size_t)n : 0;
    }
    value[size] = '\0';
    if (ok)
        words_variable(words, name, value);
    else
        error_errno(err, INTERNAL, "cannot read the secret %s", name);
    if (fd >= 0)
        close(fd);
    return ok;
}

bool program_environment(struct words *words, const char *folder, const json_t *start,
                         struct error *err)
{
    const json_t *program = json_object_get(start, "program");
    int64_t threads = (files_int(start, "cpu_millis") + 999) / 1000;
    words_variable(words, "TRAINYARD_OUT",
                   arena_printf(words->arena, "%s/" PROGRAM_OUT, folder));
    words_variable(
        words, "TRAINYARD_CHECKPOINTS",
        arena_printf(words->arena, "%s/checkpoints", files_text(start, "job_folder")));
    words_variable_int(words, "TRAINYARD_PORT", files_int(start, "port"));
    words_variable(words, "PYTHONUNBUFFERED", "1"); /* lines are seen when they are printed */
    words_variable_int(words, "OMP_NUM_THREADS", threads > 0 ? threads : 1);
    program_add_cluster(words, start);
    add_ranks(words, start);
    add_gpus(words, start);

    json_t *value;
    const char *name;
    const json_t *secrets = json_object_get(program, "secrets");
    json_object_foreach((json_t *)secrets, name, value)
    {
        const char *path =
            arena_printf(words->arena, "%s/" PROGRAM_SECRETS "/%s", folder, name);
        words_variable(words, arena_printf(words->arena, "%s_FILE", name), path);
        if (strcmp(json_string_value(value), "env") == 0 &&
            !secret_read(words, name, path, err))
            return false;
    }
    if (json_object_size(secrets))
        words_variable(words, "TRAINYARD_SECRETS",
                       arena_printf(words->arena, "%s/" PROGRAM_SECRETS, folder));
    json_object_foreach(json_object_get(program, "variables"), name, value)
    {
        words_variable(words, name, json_string_value(value));
    }
    return true;
}
