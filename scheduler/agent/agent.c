/* agent.c - an agent's life: its folder, its identity, its thread. */

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "base/mailbox.h"
#include "proto/rpc.h"
#include "scheduler/agent/agent.h"
#include "scheduler/agent/credentials.h"
#include "scheduler/agent/datasets.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/internal.h"
#include "scheduler/agent/inventory.h"
#include "scheduler/agent/link.h"
#include "scheduler/agent/view.h"

static bool name_is_good(const char *name)
{
    static const char good[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return *name && strlen(name) <= LIMIT_NAME_BYTES && strspn(name, good) == strlen(name) &&
           strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool folder_take(struct agent *agent, struct error *err)
{
    if (!files_make_folder(agent->attempts_folder, err))
        return false;
    char *path = alloc_printf("%s/lock", agent->folder);
    agent->lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool ok = agent->lock_file >= 0 || error_errno(err, INTERNAL, "cannot open %s", path);
    if (ok && flock(agent->lock_file, LOCK_EX | LOCK_NB))
        ok = fail(err, EXISTS, "another agent works in %s", agent->folder);
    free(path);
    return ok;
}

/* node.json: a name that may be given anew, an identity that stays. */
static bool identity_take(struct agent *agent, const char *wanted_name, struct error *err)
{
    char host[65] = "node";
    json_t *known = files_read_json(agent->folder, "node.json", err);
    if (!known && err->code != NOT_FOUND)
        return false;
    gethostname(host, sizeof(host) - 1);
    const char *name = wanted_name                  ? wanted_name
                       : *files_text(known, "name") ? files_text(known, "name")
                                                    : host;
    agent->node_name = alloc_text(name);
    unsigned char noise[16];
    bool ok = getrandom(noise, sizeof(noise), 0) == (ssize_t)sizeof(noise) ||
              error_errno(err, INTERNAL, "no random numbers");
    memcpy(&agent->core.random, noise, sizeof(agent->core.random));
    if (*files_text(known, "identity")) {
        agent->identity = alloc_text(files_text(known, "identity"));
    } else {
        agent->identity = alloc_bytes(2 * sizeof(noise) + 1);
        for (size_t i = 0; i < sizeof(noise); i++)
            snprintf(agent->identity + 2 * i, 3, "%02x", noise[i]);
    }
    json_decref(known);
    if (ok && !name_is_good(agent->node_name))
        ok = fail(err, INVALID,
                  "'%s' cannot be the name of a node: letters, digits, '.', '_', '-'",
                  agent->node_name);
    return ok && files_write_json(agent->folder, "node.json",
                                  json_pack("{s:s, s:s}", "name", agent->node_name, "identity",
                                            agent->identity),
                                  err);
}

/* `path`, or the program `name` beside this one; NULL when it cannot be run. */
static char *program_find(const char *path, const char *name, struct error *err)
{
    char own[4096];
    char *found;
    if (path) {
        found = alloc_text(path);
    } else {
        ssize_t size = readlink("/proc/self/exe", own, sizeof(own) - 1);
        own[size < 0 ? 0 : size] = '\0';
        char *slash = strrchr(own, '/');
        found = alloc_printf("%.*s/%s", slash ? (int)(slash - own) : 0, own, name);
    }
    if (access(found, X_OK) == 0)
        return found;
    error_errno(err, NOT_FOUND, "the program %s", found);
    free(found);
    return NULL;
}

/* A path that holds whatever the current folder is. */
static char *path_absolute(const char *path)
{
    char *here = *path == '/' ? NULL : getcwd(NULL, 0);
    char *absolute = here ? alloc_printf("%s/%s", here, path) : alloc_text(path);
    free(here);
    return absolute;
}

static void agent_free(struct agent *agent)
{
    for (int i = 0; i < agent->core.tasks_count; i++)
        attempt_free(agent->core.tasks[i].attempt);
    core_release(&agent->core);
    datasets_free(agent->datasets);
    mailbox_free(agent->mailbox);
    if (agent->inotify >= 0)
        close(agent->inotify);
    if (agent->lock_file >= 0)
        close(agent->lock_file);
    pthread_cond_destroy(&agent->failing);
    pthread_mutex_destroy(&agent->lock);
    credentials_free(agent->credentials);
    labels_release(&agent->labels);
    gpus_query_end(&agent->gpus_query);
    gpus_release(&agent->gpus);
    free(agent->folder);
    free(agent->attempts_folder);
    free(agent->node_name);
    free(agent->identity);
    free(agent->token);
    free(agent->task_path);
    free(agent->shim_path);
    free(agent);
}

static struct agent *agent_make(const struct agent_options *options)
{
    struct agent *agent = alloc_bytes(sizeof(*agent));
    agent->folder = path_absolute(options->folder);
    agent->attempts_folder = alloc_printf("%s/attempts", agent->folder);
    agent->datasets =
        datasets_new(agent->folder, agent->attempts_folder, options->dataset_bytes);
    const char *token = options->token ? options->token : "";
    agent->token = alloc_printf("%.*s", (int)strcspn(token, "."), token);
    inventory_boot_id(agent->boot_id, sizeof(agent->boot_id));
    inventory_host(options->server, agent->host, sizeof(agent->host));
    agent->capacity = (struct agent_resources){
        .cpu_millis = options->cpu_millis ? options->cpu_millis : inventory_cpu_millis(),
        .memory_bytes =
            options->memory_bytes ? options->memory_bytes : inventory_memory_bytes(),
        .gpus = options->fake_gpus,
        .gpu_type = options->fake_gpus ? "fake" : "",
    };
    agent->lock_file = -1;
    agent->gpus_query.fd = -1;
    agent->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    agent->mailbox = mailbox_new(16);
    pthread_mutex_init(&agent->lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&agent->failing, &attr);
    pthread_condattr_destroy(&attr);
    return agent;
}

/* After what runs was found: as long as tasks hold GPUs these keep their numbers, and what has
 * ended meanwhile may still be on them. */
static void offer_gpus(struct agent *agent)
{
    bool held = false;
    for (int i = 0; i < agent->core.tasks_count; i++)
        held |= attempt_has_gpus(agent->core.tasks[i].attempt);
    gpus_find(agent->task_path, agent->folder, held, &agent->gpus);
    gpu_watch_offer(agent);
    for (int i = 0; i < agent->core.tasks_count; i++) {
        struct core_task *task = &agent->core.tasks[i];
        if (task->state == AGENT_TASK_EXITED)
            gpu_watch_ended(agent, task);
    }
}

/* Of a server in this process, or one that takes certificates of its operator, all is known;
 * else the agent's thread gets what it needs. */
static bool connect_link(struct agent *agent, const struct agent_options *options,
                         struct error *err)
{
    const struct rpc_tls *tls = options->tls;
    agent->link = link_new(options->server, agent->mailbox);
    if (strncmp(options->server, "local:", 6) == 0 || (tls && tls->certificate))
        return link_connect(agent->link, tls, err);
    const struct credentials_options known = {.folder = agent->folder,
                                              .server = options->server,
                                              .node_name = agent->node_name,
                                              .token = options->token,
                                              .ca = tls ? tls->ca : NULL};
    agent->credentials = credentials_open(&known, err);
    return agent->credentials != NULL;
}

struct agent *agent_start(const struct agent_options *options, struct error *err)
{
    struct agent *agent = agent_make(options);
    agent->task_path = program_find(options->task_path, "trainyard-task", err);
    agent->shim_path =
        agent->task_path ? program_find(options->shim_path, "trainyard-shim", err) : NULL;
    agent->places = (struct attempt_places){
        agent->attempts_folder, agent->shim_path,          agent->task_path,
        agent->datasets,        options->no_shared_folder,
    };
    bool ok = agent->shim_path && labels_parse(options->labels, &agent->labels, err) &&
              users_parse(options->task_user, &agent->users, err) && folder_take(agent, err) &&
              identity_take(agent, options->node_name, err);
    if (ok && agent->inotify < 0)
        ok = error_errno(err, EXHAUSTED, "cannot watch files");
    ok = ok && work_adopt(agent, err);
    if (ok && !options->fake_gpus)
        offer_gpus(agent);
    if (ok && agent->users.count) {
        agent->view_refused = view_probe(agent->shim_path);
        labels_add(&agent->labels, VIEW_LABEL, agent->view_refused ? "shared" : "private");
    }
    if (!ok || !connect_link(agent, options, err)) {
        if (agent->link)
            link_cancel(agent->link);
        link_free(agent->link);
        agent_free(agent);
        return NULL;
    }
    int failed = pthread_create(&agent->thread, NULL, work_main, agent);
    assert(!failed);
    pthread_setname_np(agent->thread, "agent");
    return agent;
}

void agent_stop(struct agent *agent)
{
    if (!agent)
        return;
    mailbox_close(agent->mailbox);
    link_cancel(agent->link);
    pthread_join(agent->thread, NULL);
    struct link_mail *mail;
    while ((mail = mailbox_take(agent->mailbox, 0)))
        link_continue(agent->link, mail, 0, 0);
    link_free(agent->link);
    agent_free(agent);
}

bool agent_wait_failed(struct agent *agent, int timeout_ms, struct error *err)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&agent->lock);
    while (!agent->failed && timeout_ms > 0 &&
           pthread_cond_timedwait(&agent->failing, &agent->lock, &until) == 0) {
    }
    bool failed = agent->failed;
    if (failed)
        *err = agent->error;
    pthread_mutex_unlock(&agent->lock);
    return failed;
}

bool agent_failed(struct agent *agent, struct error *err)
{
    return agent_wait_failed(agent, 0, err);
}
