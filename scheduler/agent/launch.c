/* launch.c - command line and environment of a task; its processes in /proc. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/failpoint.h"
#include "proto/agent_pb.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/launch.h"
#include "scheduler/agent/prepare.h"
#include "scheduler/agent/program.h"
#include "scheduler/agent/spawn.h"
#include "scheduler/agent/users.h"
#include "scheduler/agent/view.h"
#include "scheduler/agent/words.h"

#define SHIM_ALREADY 3 /* its exit code when the folder has had its task */

json_t *launch_start_json(const struct agent_start_task *start, const char *cookie)
{
    json_t *cluster = json_array();
    for (int i = 0; i < start->cluster_count; i++) {
        const struct agent_task_address *task = &start->cluster[i];
        json_array_append_new(cluster, json_pack("{s:s, s:i, s:s}", "role", task->role, "index",
                                                 task->index, "address", task->address));
    }
    json_t *json = json_pack(
        "{s:I, s:I, s:s, s:i, s:i, s:s, s:s, s:I, s:I, s:i, s:o, s:s}", "job_id",
        (json_int_t)start->task.job_id, "attempt_epoch", (json_int_t)start->task.attempt_epoch,
        "role", start->task.role, "index", start->task.index, "attempt", start->attempt,
        "job_folder", start->job_folder, "dataset_folder", start->dataset_folder, "cpu_millis",
        (json_int_t)start->cpu_millis, "memory_bytes", (json_int_t)start->memory_bytes, "gpus",
        start->gpus, "cluster", cluster, "cookie", cookie);
    json_t *gpus = json_array();
    for (int i = 0; i < 64; i++) {
        if (start->gpu_mask >> i & 1)
            json_array_append_new(gpus, json_integer(i));
    }
    json_object_set_new(json, "gpu_ids", gpus);
    json_object_set_new(json, "stall_ms", json_integer(start->stall_ms));
    json_object_set_new(json, "restarts", json_integer(start->restarts));
    if (start->group_epoch)
        json_object_set_new(json, "group_epoch", json_integer(start->group_epoch));
    if (start->program.words_count)
        json_object_set_new(json, "program", program_json(&start->program));
    else
        json_object_set_new(json, "tasks", json_integer(start->tasks));
    if (start->idle_seconds)
        json_object_set_new(json, "idle_seconds", json_integer(start->idle_seconds));
    return json;
}

/* --- words --- */

static int64_t threads_of(const json_t *start)
{
    int64_t threads = (files_int(start, "cpu_millis") + 999) / 1000;
    return threads > 0 ? threads : 1;
}

/* That of its attempt: tasks of it that were placed anew have later ones of their own. */
static int64_t group_epoch(const json_t *start)
{
    int64_t epoch = files_int(start, "group_epoch");
    return epoch ? epoch : files_int(start, "attempt_epoch");
}

static void training_command(struct words *words, const char *task_path, const char *folder,
                             const json_t *start)
{
    const char *dataset = files_text(start, "dataset_folder");
    words_add(words, task_path);
    words_option(words, "train", "spec.json");
    if (*dataset)
        words_option(words, "--data", dataset);
    words_option(words, "--out", folder);
    words_option(words, "--checkpoints",
                 arena_printf(words->arena, "%s/checkpoints", files_text(start, "job_folder")));
    words_add(words, "--resume");
    words_option_int(words, "--epoch", group_epoch(start));
    words_option_int(words, "--attempt", files_int(start, "attempt"));
    words_option_int(words, "--threads", threads_of(start));
    if (*files_text(start, "certificate"))
        words_option(words, "--certificate", files_text(start, "certificate"));
}

/* What it is of which cluster TF_CONFIG says. */
static void serving_command(struct words *words, const char *task_path, const json_t *start)
{
    words_add(words, task_path);
    words_option(words, "--certificate", files_text(start, "certificate"));
    words_option_int(words, "--idle-seconds", files_int(start, "idle_seconds"));
    words_option_int(words, "--threads", threads_of(start));
}

static void command_make(struct words *words, const char *shim_path, const char *task_path,
                         const char *folder, const json_t *start)
{
    bool program = json_object_get(start, "program") != NULL;
    words_add(words, shim_path);
    words_option(words, "--folder", folder);
    words_option(words, "--cookie", files_text(start, "cookie"));
    if (files_int(start, "memory_bytes") > 0)
        words_option_int(words, "--memory", files_int(start, "memory_bytes"));
    if (files_int(start, "restarts") > 0)
        words_option_int(words, "--restarts", files_int(start, "restarts"));
    if (users_of(start))
        words_option(words, "--user",
                     arena_printf(words->arena, "%u:%u", users_of(start), users_group(start)));
    if (program)
        words_option(words, "--workdir", program_folder(start));
    view_words(words, task_path, folder, start);
    words_add(words, "--");
    if (program)
        program_command(words, start);
    else if (files_int(start, "idle_seconds"))
        serving_command(words, task_path, start);
    else
        training_command(words, task_path, folder, start);
}

/* The home of a task with a user of its own is where it may write. */
static const char *home_of(struct words *words, const char *folder, const json_t *start)
{
    const char *home = getenv("HOME");
    if (!users_of(start))
        return home ? home : "/";
    return json_object_get(start, "program")
               ? arena_printf(words->arena, "%s/" PROGRAM_WORK, folder)
               : folder;
}

/* How tasks on this node reach others besides by sockets (runtime/worker/fabric.h), and what
 * UCX is to use of the machine, are the operator's to say: in the agent's environment. */
static void exchange_variables(struct words *words)
{
    static const char *const wanted[] = {"TRAINYARD_FABRIC=", "TRAINYARD_NEAR=", "UCX_"};
    for (char **at = environ; *at; at++) {
        const char *equals = strchr(*at, '=');
        bool is_one = false;
        for (int i = 0; equals && i < ARRAY_LEN(wanted) && !is_one; i++)
            is_one = strncmp(*at, wanted[i], strlen(wanted[i])) == 0;
        if (is_one)
            words_variable(words, arena_text_n(words->arena, *at, (size_t)(equals - *at)),
                           equals + 1);
    }
}

/* Nothing of the agent's own environment but where programs and the home are. */
static bool environment_make(struct words *words, const char *folder, const json_t *start,
                             struct error *err)
{
    const char *path = getenv("PATH");
    words_variable(words, "PATH", path ? path : "/usr/local/bin:/usr/bin:/bin");
    words_variable(words, "HOME", home_of(words, folder, start));
    words_variable(words, "LANG", "C.UTF-8");
    words_variable_int(words, "TRAINYARD_JOB", files_int(start, "job_id"));
    words_variable_int(words, "TRAINYARD_EPOCH", group_epoch(start));
    if (files_int(start, "group_epoch")) /* runtime/worker/moved.h */
        words_variable_int(words, "TRAINYARD_PLACED", files_int(start, "attempt_epoch"));
    words_variable_int(words, "TRAINYARD_ATTEMPT", files_int(start, "attempt"));
    words_variable(words, "TRAINYARD_ROLE", files_text(start, "role"));
    words_variable_int(words, "TRAINYARD_INDEX", files_int(start, "index"));
    words_variable(words, "TRAINYARD_COOKIE", files_text(start, "cookie"));
    if (getenv(FAILPOINT_VARIABLE))
        words_variable(words, FAILPOINT_VARIABLE, getenv(FAILPOINT_VARIABLE));
    if (!json_object_get(start, "program"))
        exchange_variables(words);
    if (!json_object_get(start, "program") && prepare_wanted(start))
        program_add_cluster(words, start);
    return !json_object_get(start, "program") || program_environment(words, folder, start, err);
}

bool launch_shim(const char *shim_path, const char *task_path, const char *folder,
                 const json_t *start, struct error *err)
{
    char line[500];
    int code;
    struct arena *arena = arena_new();
    struct words command = {.arena = arena}, environment = {.arena = arena};
    command_make(&command, shim_path, task_path, folder, start);
    const char *log = arena_printf(arena, "%s/shim.log", folder);
    bool ok = environment_make(&environment, folder, start, err) &&
              spawn_run(command.list, environment.list, log, &code, err);
    if (ok && code != 0 && code != SHIM_ALREADY) {
        const char *last = files_last_line(folder, "shim.log", line, sizeof(line));
        ok = fail(err, INTERNAL, "the shim could not start (code %d)%s%s", code,
                  *last ? ": " : "", last);
    }
    words_release(&command);
    words_release(&environment);
    arena_free(arena);
    return ok;
}

/* --- processes --- */

/* Reads a file of a process whole, as far as it fits; the size, 0 when there is none. */
static size_t process_read(pid_t pid, const char *name, char *out, size_t out_size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    ssize_t n = 0;
    while (fd >= 0 && size + 1 < out_size &&
           (n = read(fd, out + size, out_size - 1 - size)) > 0)
        size += (size_t)n;
    if (fd >= 0)
        close(fd);
    out[size] = '\0';
    return size;
}

/* Clock ticks since boot, 0 when there is no such process. */
static int64_t process_start_time(pid_t pid)
{
    char text[1024];
    long long ticks;
    process_read(pid, "stat", text, sizeof(text));
    const char *rest = strrchr(text, ')'); /* the name may hold anything */
    if (!rest || sscanf(rest + 1,
                        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                        "%*d %*d %lld",
                        &ticks) != 1)
        return 0;
    return ticks;
}

bool launch_is_process(pid_t pid, int64_t start_time, const char *cookie)
{
    char text[4096];
    if (!*cookie || process_start_time(pid) != start_time)
        return false;
    size_t size = process_read(pid, "cmdline", text, sizeof(text));
    for (size_t i = 0; i < size; i += strlen(text + i) + 1) {
        if (strcmp(text + i, cookie) == 0)
            return true;
    }
    return false;
}

/* Kills what is in a cgroup and removes it. */
static void cgroup_end(const char *cgroup)
{
    char *path = alloc_printf("%s/cgroup.kill", cgroup);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (write(fd, "1", 1) < 0) {
            /* Then its processes are found by their environment. */
        }
        close(fd);
    }
    free(path);
    path = alloc_printf("%s/cgroup.events", cgroup);
    struct pollfd emptied = {.fd = open(path, O_RDONLY | O_CLOEXEC), .events = POLLPRI};
    for (int i = 0; i < 10 && rmdir(cgroup) && errno == EBUSY; i++)
        poll(&emptied, 1, 20); /* it is, once the dying are dead */
    if (emptied.fd >= 0)
        close(emptied.fd);
    free(path);
}

/* Kills every process with `wanted` in its environment; how many there were. */
static int environment_kill(const char *wanted)
{
    static const size_t text_size = 1 << 17;
    int found = 0;
    char *text = alloc_bytes(text_size);
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && (entry = readdir(proc))) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        size_t size = pid > 0 ? process_read(pid, "environ", text, text_size) : 0;
        for (size_t i = 0; i < size; i += strlen(text + i) + 1) {
            if (strcmp(text + i, wanted) == 0)
                found += kill(pid, SIGKILL) == 0;
        }
    }
    if (proc)
        closedir(proc);
    free(text);
    return found;
}

void launch_kill_strays(const char *cookie, const char *cgroup)
{
    if (!*cookie)
        return;
    char *wanted = alloc_printf("TRAINYARD_COOKIE=%s", cookie);
    for (int round = 0; round < 10 && environment_kill(wanted); round++) {
    }
    if (*cgroup)
        cgroup_end(cgroup);
    free(wanted);
}
