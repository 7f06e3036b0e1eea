/* failpoint.c - the table of failpoints, and what is armed. */

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/failpoint.h"

#define ARMED_MAX 8

/* The part before the dot says who passes it, and so who is killed. */
const char *const failpoint_names[] = {
    /* server: each group of writes to its two databases */
    "control.begin", "control.before_commit", "control.after_commit", "metrics.begin",
    "metrics.before_commit", "metrics.after_commit",
    /* server: a submit, the scheduler's decisions on their way to agents, what agents say */
    "server.submit_before_store", "server.submit_after_store", "server.before_decide",
    "server.before_send", "server.after_send", "server.command_before_send",
    "server.command_after_send", "server.on_join", "server.on_report", "server.on_ship",
    "server.after_ship", "server.on_fetch", "server.met",
    /* server: files that jobs bring, and artifacts */
    "store.before_write", "store.before_rename", "store.after_rename",
    "store.artifact_before_write", "store.artifact_before_rename",
    "store.artifact_after_rename",
    /* server: checkpoints from nodes that do not see its folder */
    "server.on_checkpoint", "store.checkpoint_before_rename", "store.checkpoint_after_rename",
    /* agent: its journal is a folder for each attempt */
    "agent.before_join", "agent.after_join", "agent.command", "agent.folder_before_rename",
    "agent.folder_after_rename", "agent.fetch", "agent.before_launch", "agent.after_launch",
    "agent.before_mirror", "agent.after_mirror", "agent.before_ship", "agent.after_ship",
    "agent.ended", "agent.before_report", "agent.after_report", "agent.acknowledged",
    "agent.before_clean", "agent.folder_aside",
    /* shim: its record is shim.json, written twice, and exit.json */
    "shim.claimed", "shim.record_before_rename", "shim.record_after_rename",
    "shim.after_identity", "shim.before_task", "shim.after_task", "shim.before_reply",
    "shim.task_ended", "shim.before_exit_record", "shim.after_exit_record",
    /* task: what goes to its agent by the event file, and its checkpoints */
    "task.file_before_rename", "task.claimed", "task.step", "task.before_events",
    "task.after_events", "task.ckpt_open", "task.ckpt_data", "task.ckpt_manifest",
    "task.ckpt_before_rename", "task.ckpt_before_state", "task.ckpt_after_state",
    "task.ckpt_published", NULL};

static struct armed {
    const char *name;
    unsigned long at;
    char file[400]; /* "": as often as somebody passes */
    atomic_ulong passed;
} armed[ARMED_MAX];
static int armed_count;

atomic_bool failpoint_armed;

static const char *name_find(const char *text, size_t size)
{
    for (const char *const *name = failpoint_names; *name; name++) {
        if (strlen(*name) == size && memcmp(*name, text, size) == 0)
            return *name;
    }
    return NULL;
}

/* Reads one, up to a space or the end; returns what is behind it, NULL when it makes no sense.
 */
static const char *armed_read(const char *text, struct armed *one)
{
    const char *end = text + strcspn(text, " ");
    const char *equals = memchr(text, '=', (size_t)(end - text));
    char *rest;
    if (!equals || !(one->name = name_find(text, (size_t)(equals - text))) ||
        strncmp(equals, "=kill@", 6) != 0 || equals[6] < '1' || equals[6] > '9')
        return NULL;
    one->at = strtoul(equals + 6, &rest, 10);
    if (rest < end && *rest != ',')
        return NULL;
    if (rest < end)
        rest++;
    size_t size = (size_t)(end - rest);
    if (size >= sizeof(one->file))
        return NULL;
    memcpy(one->file, rest, size);
    one->file[size] = '\0';
    return end;
}

static void usage(void)
{
    fprintf(stderr,
            FAILPOINT_VARIABLE " is not NAME=kill@N[,FILE], at most %d of them; NAME is one of",
            ARMED_MAX);
    for (const char *const *name = failpoint_names; *name; name++)
        fprintf(stderr, " %s", *name);
    fprintf(stderr, "\n");
}

bool failpoint_arm(void)
{
    const char *text = getenv(FAILPOINT_VARIABLE);
    armed_count = 0;
    for (const char *at = text ? text : ""; *at;) {
        if (*at == ' ') {
            at++;
            continue;
        }
        at = armed_count < ARMED_MAX ? armed_read(at, &armed[armed_count]) : NULL;
        if (!at) {
            usage();
            return false;
        }
        armed_count++;
    }
    atomic_store(&failpoint_armed, armed_count > 0);
    return true;
}

/* Whether this process is the one that dies: there is one file, and one that makes it. */
static bool file_make(const char *path)
{
    if (!*path)
        return true;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    dprintf(fd, "%ld\n", (long)getpid());
    close(fd);
    return true;
}

void failpoint_pass(const char *name)
{
    assert(name_find(name, strlen(name)));
    for (int i = 0; i < armed_count; i++) {
        struct armed *one = &armed[i];
        if (strcmp(one->name, name) == 0 && atomic_fetch_add(&one->passed, 1) + 1 == one->at &&
            file_make(one->file))
            kill(getpid(), SIGKILL);
    }
}
