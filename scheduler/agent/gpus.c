/* gpus.c - asking for GPUs, choosing, claiming, remembering. */

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/str.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/gpus.h"

#define GPUS_FILE "gpus.json"
#define ANSWER_BYTES_MAX (1 << 20)
#define READ_BYTES 4096
#define SILENT_MAX 3 /* answers in a row that did not come, until its GPUs count as lost */

/* --- asking --- */

/* No program is started where there is no driver to ask. */
static bool is_worth_asking(void)
{
    const char *library = getenv("TRAINYARD_NVML");
    return (library && *library) || access("/dev/nvidiactl", F_OK) == 0;
}

/* One that was killed in the driver may hang there: it is left, and ends with this process. */
static bool is_reaped(struct gpus_query *query)
{
    if (query->pid > 0 && waitpid(query->pid, NULL, WNOHANG) != 0)
        query->pid = 0;
    return query->pid == 0;
}

bool gpus_query_begin(struct gpus_query *query, const char *task_path)
{
    int pipes[2];
    pid_t pid;
    posix_spawn_file_actions_t actions;
    const char *const words[] = {task_path, "gpus", "--json", NULL};
    assert(query->fd < 0);
    if (!is_reaped(query) || pipe2(pipes, O_CLOEXEC) != 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    int failed = posix_spawn(&pid, task_path, &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    if (failed) {
        close(pipes[0]);
        return false;
    }
    fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    *query = (struct gpus_query){.fd = pipes[0],
                                 .pid = pid,
                                 .until_us = clock_monotonic_us() + GPUS_ASK_MS * 1000,
                                 .text = alloc_bytes(sizeof(*query->text))};
    return true;
}

static void query_close(struct gpus_query *query)
{
    close(query->fd);
    query->fd = -1;
    str_release(query->text);
    free(query->text);
    query->text = NULL;
}

void gpus_query_end(struct gpus_query *query)
{
    if (query->fd < 0)
        return;
    query_close(query);
    kill(query->pid, SIGKILL);
    is_reaped(query);
}

enum gpus_answer gpus_query_go_on(struct gpus_query *query, json_t **answer)
{
    struct str *text = query->text;
    ssize_t n;
    do {
        char *room = str_extend(text, READ_BYTES);
        n = read(query->fd, room, READ_BYTES);
        text->size -= READ_BYTES - (size_t)(n > 0 ? n : 0);
    } while (n > 0 && text->size <= ANSWER_BYTES_MAX);
    bool again = n < 0 && (errno == EAGAIN || errno == EINTR);
    if (again && clock_monotonic_us() < query->until_us)
        return GPUS_WAIT;
    *answer = n == 0 ? json_loadb(str_text(text), text->size, 0, NULL) : NULL;
    if (n == 0) /* it has closed its end, and goes */
        waitpid(query->pid, NULL, 0);
    query->pid = n == 0 ? 0 : query->pid;
    if (query->pid)
        gpus_query_end(query);
    else
        query_close(query);
    return *answer ? GPUS_ANSWERED : GPUS_SILENT;
}

/* {"gpus": […], "error"}, owned; NULL when nothing came in time. */
static json_t *ask(const char *task_path)
{
    struct gpus_query query = {.fd = -1};
    json_t *answer = NULL;
    if (!gpus_query_begin(&query, task_path))
        return NULL;
    while (gpus_query_go_on(&query, &answer) == GPUS_WAIT) {
        struct pollfd wait = {.fd = query.fd, .events = POLLIN};
        poll(&wait, 1, 100);
    }
    return answer;
}

/* --- choosing --- */

static void refuse(const char *uuid, const char *why, const char *detail)
{
    log_line(LOG_WARN, "gpus", "gpu=%s msg=\"not offered: %s%s%s\"", *uuid ? uuid : "?", why,
             *detail ? ": " : "", detail);
}

/* The lock that says which agent of the machine has it; -1: another has. */
static int claim(const char *uuid)
{
    const char *folder = access("/run/lock", W_OK) == 0 ? "/run/lock" : "/tmp";
    char *path = alloc_printf("%s/trainyard-%s.lock", folder, uuid);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        fd = -1;
    }
    free(path);
    return fd;
}

/* What of it could make a path or a variable is checked: it comes from a driver. */
static bool is_uuid(const char *text)
{
    size_t size = strlen(text);
    return size >= 4 && size < sizeof(((struct gpu *)NULL)->uuid) &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") ==
               size;
}

static void consider(const json_t *json, struct gpus *out)
{
    const char *uuid = files_text(json, "uuid"), *name = files_text(json, "name");
    const char *error = files_text(json, "error");
    const json_t *processes = json_object_get(json, "processes");
    struct gpu *gpu = &out->list[out->count];
    if (*error) {
        refuse(uuid, "it does not answer", error);
    } else if (!is_uuid(uuid) || out->count == GPUS_MAX) {
        refuse("", "the driver's answer makes no sense", "");
    } else if (json_array_size(processes)) {
        char pid[40];
        snprintf(pid, sizeof(pid), "process %lld",
                 (long long)json_integer_value(json_array_get(processes, 0)));
        refuse(uuid, "another program uses it", pid);
    } else if (out->count && strcmp(out->list[0].name, name) != 0) {
        refuse(uuid, "it is of another kind than the first", name);
    } else if ((gpu->lock = claim(uuid)) < 0) {
        refuse(uuid, "another agent of this machine has claimed it", "");
    } else {
        snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", uuid);
        snprintf(gpu->name, sizeof(gpu->name), "%s", name);
        gpu->memory_bytes = files_int(json, "memory_bytes");
        gpu->utilization = -1; /* until it is looked at again */
        out->count++;
    }
}

/* --- remembering --- */

static void keep(const char *folder, const struct gpus *gpus)
{
    struct error err;
    char text[400];
    json_t *list = json_array();
    for (int i = 0; i < gpus->count; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "uuid", gpus->list[i].uuid,
                                              "name", gpus->list[i].name, "memory_bytes",
                                              (json_int_t)gpus->list[i].memory_bytes));
    if (!files_write_json(folder, GPUS_FILE, json_pack("{s:o}", "gpus", list), &err))
        log_line(LOG_WARN, "gpus", "msg=%s", log_quote(err.text, text, sizeof(text)));
}

/* The list of the agent before, as the server knows it. */
static void remember(const char *folder, struct gpus *out)
{
    struct error err;
    json_t *kept = files_read_json(folder, GPUS_FILE, &err), *one;
    size_t i;
    json_array_foreach(json_object_get(kept, "gpus"), i, one)
    {
        struct gpu *gpu = &out->list[out->count];
        if (out->count == GPUS_MAX || !is_uuid(files_text(one, "uuid")))
            break;
        snprintf(gpu->uuid, sizeof(gpu->uuid), "%s", files_text(one, "uuid"));
        snprintf(gpu->name, sizeof(gpu->name), "%s", files_text(one, "name"));
        gpu->memory_bytes = files_int(one, "memory_bytes");
        gpu->utilization = -1;
        gpu->lock = claim(gpu->uuid);
        out->count++;
    }
    json_decref(kept);
}

void gpus_find(const char *task_path, const char *folder, bool held, struct gpus *out)
{
    *out = (struct gpus){0};
    out->asked = is_worth_asking();
    if (!out->asked)
        return;
    if (held) {
        remember(folder, out);
        return;
    }
    json_t *answer = ask(task_path), *gpu;
    size_t i;
    if (!answer)
        log_line(LOG_WARN, "gpus",
                 "msg=\"NVIDIA's driver did not answer in %d s: no GPU is offered\"",
                 GPUS_ASK_MS / 1000);
    else if (*files_text(answer, "error"))
        log_line(LOG_WARN, "gpus", "msg=\"no GPU is offered: %s\"",
                 files_text(answer, "error"));
    json_array_foreach(json_object_get(answer, "gpus"), i, gpu) consider(gpu, out);
    json_decref(answer);
    keep(folder, out);
    if (out->count)
        log_line(LOG_INFO, "gpus", "count=%d type=\"%s\" msg=\"offered\"", out->count,
                 out->list[0].name);
}

/* --- looking again --- */

/* What the driver says of it; NULL: nothing. */
static const json_t *answer_of(const json_t *answer, const char *uuid)
{
    json_t *one;
    size_t i;
    json_array_foreach(json_object_get(answer, "gpus"), i, one)
    {
        if (strcmp(files_text(one, "uuid"), uuid) == 0)
            return one;
    }
    return NULL;
}

static bool look_at(struct gpu *gpu, const json_t *now, bool held)
{
    const json_t *processes = json_object_get(now, "processes");
    bool was = gpu->away;
    gpu->busy = json_array_size(processes) > 0;
    gpu->utilization =
        json_object_get(now, "utilization") ? (int)files_int(now, "utilization") : -1;
    gpu->used_bytes = files_int(now, "memory_used_bytes");
    gpu->lost = !now || *files_text(now, "error");
    gpu->away = gpu->lost || (gpu->busy && !held);
    if (!now)
        snprintf(gpu->why, sizeof(gpu->why), "NVIDIA's driver does not tell of it any more");
    else if (gpu->lost)
        snprintf(gpu->why, sizeof(gpu->why), "%s", files_text(now, "error"));
    else if (gpu->away)
        snprintf(gpu->why, sizeof(gpu->why), "process %lld uses it",
                 (long long)json_integer_value(json_array_get(processes, 0)));
    if (gpu->away && !was)
        refuse(gpu->uuid, gpu->lost ? "it is lost" : "another program uses it", gpu->why);
    else if (!gpu->away && was)
        log_line(LOG_INFO, "gpus", "gpu=%s msg=\"offered again\"", gpu->uuid);
    return gpu->away != was;
}

/* Adds one that nobody used, or that was not there, before. */
static bool look_for_new(struct gpus *gpus, const json_t *one)
{
    const char *name = files_text(one, "name"), *uuid = files_text(one, "uuid");
    int before = gpus->count;
    if (*files_text(one, "error") || json_array_size(json_object_get(one, "processes")) ||
        (before && strcmp(gpus->list[0].name, name) != 0) || before == GPUS_MAX ||
        !is_uuid(uuid))
        return false; /* as was said at the start */
    int lock = claim(uuid);
    if (lock < 0)
        return false;
    close(lock);
    consider(one, gpus);
    if (gpus->count > before)
        log_line(LOG_INFO, "gpus", "gpu=%s msg=\"offered now\"", uuid);
    return gpus->count > before;
}

bool gpus_look(struct gpus *gpus, const json_t *answer, uint64_t held, const char *folder)
{
    bool changed = false, added = false;
    json_t *one;
    size_t n;
    gpus->silent = answer ? 0 : gpus->silent + 1;
    if (!answer && gpus->silent < SILENT_MAX)
        return false;
    for (int i = 0; i < gpus->count; i++)
        changed |=
            look_at(&gpus->list[i], answer_of(answer, gpus->list[i].uuid), held >> i & 1);
    json_array_foreach(json_object_get(answer, "gpus"), n, one)
    {
        bool known = false;
        for (int i = 0; i < gpus->count; i++)
            known |= strcmp(gpus->list[i].uuid, files_text(one, "uuid")) == 0;
        added |= !known && look_for_new(gpus, one);
    }
    if (added)
        keep(folder, gpus);
    return changed || added;
}

uint64_t gpus_away(const struct gpus *gpus)
{
    uint64_t away = 0;
    for (int i = 0; i < gpus->count; i++)
        away |= (uint64_t)gpus->list[i].away << i;
    return away;
}

void gpus_release(struct gpus *gpus)
{
    for (int i = 0; i < gpus->count; i++) {
        if (gpus->list[i].lock >= 0)
            close(gpus->list[i].lock);
    }
    gpus->count = 0;
}
