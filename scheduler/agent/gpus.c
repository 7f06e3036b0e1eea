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

/* --- asking --- */

/* No program is started where there is no driver to ask. */
static bool is_worth_asking(void)
{
    const char *library = getenv("TRAINYARD_NVML");
    return (library && *library) || access("/dev/nvidiactl", F_OK) == 0;
}

static bool read_answer(int fd, struct str *out)
{
    uint64_t until_us = clock_monotonic_us() + GPUS_ASK_MS * UINT64_C(1000);
    for (uint64_t now_us; (now_us = clock_monotonic_us()) < until_us;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, (int)((until_us - now_us) / 1000 + 1)) <= 0)
            continue;
        char *room = str_extend(out, READ_BYTES);
        ssize_t n = read(fd, room, READ_BYTES);
        out->size -= READ_BYTES - (size_t)(n > 0 ? n : 0);
        if (n == 0)
            return true;
        if ((n < 0 && errno != EINTR) || out->size > ANSWER_BYTES_MAX)
            return false;
    }
    return false;
}

/* {"gpus": […], "error"}, owned; NULL when nothing came in time. */
static json_t *ask(const char *task_path)
{
    int pipes[2];
    pid_t pid;
    struct str text = {0};
    posix_spawn_file_actions_t actions;
    const char *const words[] = {task_path, "gpus", "--json", NULL};
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    int failed = posix_spawn(&pid, task_path, &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    bool whole = !failed && read_answer(pipes[0], &text);
    close(pipes[0]);
    if (!failed && !whole)
        kill(pid, SIGKILL);
    /* One that hangs in the driver cannot be killed: it is left, and ends with this process. */
    if (!failed)
        waitpid(pid, NULL, whole ? 0 : WNOHANG);
    json_t *answer = whole ? json_loadb(str_text(&text), text.size, 0, NULL) : NULL;
    str_release(&text);
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
        gpu->lock = claim(gpu->uuid);
        out->count++;
    }
    json_decref(kept);
}

void gpus_find(const char *task_path, const char *folder, bool held, struct gpus *out)
{
    *out = (struct gpus){0};
    if (!is_worth_asking())
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

void gpus_release(struct gpus *gpus)
{
    for (int i = 0; i < gpus->count; i++) {
        if (gpus->list[i].lock >= 0)
            close(gpus->list[i].lock);
    }
    gpus->count = 0;
}
