/* train_cluster.c - see train_cluster.h. */

#include "task/train_cluster.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/str.h"
#include "proto/rpc.h"
#include "runtime/spec/spec.h"
#include "runtime/train/runner.h"
#include "runtime/worker/fabric.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"
#include "task/certificate.h"
#include "task/cluster_spec.h"
#include "task/train_moved.h"

#define ANSWER_MS 60000 /* in which all tasks must have answered */
#define LOOK_MS 50      /* between looks at what is waited for */
#define LOOKS_A_SECOND (1000 / LOOK_MS)
#define END_MS 5000 /* in which tasks that were started here must have ended */
#define DEVICES_MAX 64

struct train_cluster {
    struct train_cluster_options options;
    struct arena *arena;
    struct cluster_spec tasks;
    struct certificate certificate;
    struct worker *worker;
    struct service *service;
    struct rpc_server *server;
    struct worker_link **links; /* of all tasks, workers first */
    int links_count;
    int chief;                 /* in links */
    struct train_moved *moved; /* NULL: it was not placed anew */
    struct runner_cluster all;
    pthread_mutex_t lock; /* guards: children, once they run */
    char *addresses;      /* of tasks that were started here, as TF_CONFIG has them */
    struct child {
        pid_t pid; /* 0: it has ended */
        int restarts;
    } * children; /* that were started here: links[1] and on */
    int children_count;
};

static const enum spec_role roles[] = {ROLE_WORKER, ROLE_PS};

/* --- tasks of one's own --- */

/* A port that is free now; 0: there is none. */
static int free_port(int *held)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    *held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*held < 0 || bind(*held, (struct sockaddr *)&address, size) ||
        getsockname(*held, (struct sockaddr *)&address, &size))
        return 0;
    return ntohs(address.sin_port);
}

/* Addresses for all tasks, as TF_CONFIG has them, up to "task". */
static bool choose_addresses(const struct spec *spec, struct str *text, struct error *err)
{
    int held[LIMIT_JOB_TASKS], count = 0;
    bool ok = true;
    str_add(text, "{\"cluster\": {");
    for (int r = 0; r < ARRAY_LEN(roles); r++) {
        int replicas = spec->tasks[roles[r]].replicas;
        if (replicas)
            str_printf(text, "%s\"%s\": [", r ? ", " : "", spec_role_name(roles[r]));
        for (int i = 0; ok && i < replicas; i++) {
            int port = free_port(&held[count++]);
            ok = port || error_errno(err, UNAVAILABLE, "no port for task %d", count - 1);
            str_printf(text, "%s\"127.0.0.1:%d\"", i ? ", " : "", port);
        }
        if (replicas)
            str_add_char(text, ']');
    }
    str_add_char(text, '}');
    while (count--)
        if (held[count] >= 0)
            close(held[count]);
    return ok;
}

static char *config_of(const struct train_cluster *cluster, enum spec_role role, int index)
{
    return alloc_printf("%s, \"task\": {\"type\": \"%s\", \"index\": %d}}", cluster->addresses,
                        spec_role_name(role), index);
}

/* The child dies with this process, and does not hear what the terminal says. */
static bool start_child(struct train_cluster *cluster, struct child *child, enum spec_role role,
                        int index, struct error *err)
{
    char *config = config_of(cluster, role, index);
    char threads[16], *path = alloc_printf("/proc/%d/exe", (int)getpid());
    snprintf(threads, sizeof(threads), "%d", cluster->options.threads);
    pid_t parent = getpid(), pid = fork();
    if (!pid) {
        char *words[] = {"trainyard-task", "train", (char *)cluster->options.spec_path,
                         "--threads",      threads, NULL};
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("TF_CONFIG", config, 1);
        if (getppid() == parent)
            execv(path, words);
        _exit(127);
    }
    free(path);
    free(config);
    child->pid = pid < 0 ? 0 : pid;
    return pid > 0 || error_errno(err, UNAVAILABLE, "cannot start a task");
}

static bool start_children(struct train_cluster *cluster, struct error *err)
{
    const struct spec *spec = cluster->options.spec;
    struct str addresses = {0};
    bool ok = choose_addresses(spec, &addresses, err);
    int total = 0;
    cluster->addresses = alloc_text(str_text(&addresses));
    str_release(&addresses);
    for (int r = 0; r < ARRAY_LEN(roles); r++)
        total += spec->tasks[roles[r]].replicas;
    cluster->children = alloc_array((size_t)total, sizeof(*cluster->children));
    for (int r = 0; ok && r < ARRAY_LEN(roles); r++) {
        for (int i = roles[r] == ROLE_WORKER; ok && i < spec->tasks[roles[r]].replicas; i++)
            ok = start_child(cluster, &cluster->children[cluster->children_count++], roles[r],
                             i, err);
    }
    char *own = config_of(cluster, ROLE_WORKER, 0);
    ok = ok && cluster_spec_read_config(own, cluster->arena, &cluster->tasks, err);
    free(own);
    return ok;
}

/* A worker that was started here and has ended is started again, as often as the spec lets a
 * job be. */
static bool revive(void *arg, int link)
{
    struct train_cluster *cluster = arg;
    struct child *child = &cluster->children[link - 1];
    struct error err;
    int status;
    pthread_mutex_lock(&cluster->lock);
    if (child->pid && waitpid(child->pid, &status, WNOHANG) == child->pid)
        child->pid = 0;
    bool ok = child->pid || (child->restarts++ < cluster->options.spec->restart_max &&
                             start_child(cluster, child, ROLE_WORKER, link, &err));
    pthread_mutex_unlock(&cluster->lock);
    return ok;
}

/* --- this task --- */

/* What is not encrypted may not leave the machine. */
static bool check_near(const struct cluster_job *job, struct error *err)
{
    for (int i = 0; i < job->tasks_count; i++)
        if (strncmp(job->addresses[i], "127.", 4) &&
            strncmp(job->addresses[i], "localhost:", 10))
            return error_at(err, "/tasks", INVALID,
                            "%s %d of this job is on another machine (%s): without a "
                            "certificate (--certificate) tasks talk on this one alone",
                            job->name, i, job->addresses[i]);
    return true;
}

/* The addresses must be those of the spec's tasks. */
static bool check_config(const struct train_cluster *cluster, struct error *err)
{
    const struct cluster_spec *tasks = &cluster->tasks;
    if (!tasks->job || tasks->task < 0)
        return fail(err, INVALID, "TF_CONFIG does not say which task this is");
    for (int r = 0; r < ARRAY_LEN(roles); r++) {
        const char *role = spec_role_name(roles[r]);
        int wanted = cluster->options.spec->tasks[roles[r]].replicas, found = 0;
        for (int i = 0; i < tasks->jobs_count; i++)
            if (!strcmp(tasks->jobs[i].name, role))
                found = tasks->jobs[i].tasks_count;
        for (int i = 0; i < tasks->jobs_count; i++)
            if (!strcmp(tasks->jobs[i].name, role) && !certificate_tls(&cluster->certificate) &&
                !check_near(&tasks->jobs[i], err))
                return false;
        if (found != wanted)
            return fail(err, INVALID, "TF_CONFIG has %d tasks of role %s, the spec has %d",
                        found, role, wanted);
    }
    return true;
}

static bool link_tasks(struct train_cluster *cluster, struct error *err)
{
    const struct spec *spec = cluster->options.spec;
    const struct cluster_spec *tasks = &cluster->tasks;
    cluster->links = alloc_array((size_t)cluster_spec_tasks(tasks), sizeof(*cluster->links));
    for (int r = 0; r < ARRAY_LEN(roles); r++) {
        const char *role = spec_role_name(roles[r]);
        for (int i = 0; i < spec->tasks[roles[r]].replicas; i++) {
            char name[96];
            snprintf(name, sizeof(name), "/job:%s/replica:0/task:%d", role, i);
            const char *address = cluster_spec_address(tasks, role, i, err);
            bool here = !strcmp(role, tasks->job) && i == tasks->task;
            struct worker_link *link =
                here ? link_local_new(cluster->worker)
                : address
                    ? link_rpc_new(name, address, certificate_tls(&cluster->certificate), err)
                    : NULL;
            if (!link)
                return false;
            if (here)
                cluster->all.home = cluster->links_count;
            cluster->links[cluster->links_count++] = link;
        }
    }
    return true;
}

static bool serve(struct train_cluster *cluster, struct error *err)
{
    const struct cluster_spec *tasks = &cluster->tasks;
    if (!fabric_open_wanted(err))
        return false;
    const char *address = cluster_spec_address(tasks, tasks->job, tasks->task, err);
    cluster->worker =
        address ? worker_new(&(struct worker_options){.job = tasks->job,
                                                      .task = tasks->task,
                                                      .threads = cluster->options.threads},
                             err)
                : NULL;
    if (!cluster->worker || !link_tasks(cluster, err))
        return false;
    worker_set_peers(cluster->worker, cluster->links, cluster->links_count);
    cluster->moved =
        train_moved_new(cluster->links, cluster->links_count, cluster->all.home, address);
    cluster->service = service_new(cluster->worker);
    const struct rpc_server_options options = {.address = address,
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES - 1,
                                               .tls = certificate_tls(&cluster->certificate)};
    cluster->server = rpc_server_start(&options, service_methods, cluster->service, err);
    return cluster->server;
}

struct train_cluster *train_cluster_start(const struct train_cluster_options *options,
                                          struct error *err)
{
    struct train_cluster *cluster = alloc_bytes(sizeof(*cluster));
    const char *config = getenv("TF_CONFIG");
    cluster->options = *options;
    cluster->arena = arena_new();
    pthread_mutex_init(&cluster->lock, NULL);
    bool ok = config ? cluster_spec_read_config(config, cluster->arena, &cluster->tasks, err)
                     : start_children(cluster, err);
    if (ok && certificate_read(options->certificate, &cluster->certificate, err) &&
        check_config(cluster, err) && serve(cluster, err))
        return cluster;
    train_cluster_end(cluster);
    return NULL;
}

bool train_cluster_is_chief(const struct train_cluster *cluster)
{
    return cluster->all.home == cluster->chief;
}

/* --- waiting for each other --- */

static bool answers(struct worker_link *link, struct error *err)
{
    struct device devices[DEVICES_MAX];
    int count;
    return link->kind->status(link, devices, DEVICES_MAX, &count, err);
}

const struct runner_cluster *train_cluster_tasks(struct train_cluster *cluster,
                                                 struct error *err)
{
    uint64_t start = clock_monotonic_us();
    for (int i = 0; i < cluster->links_count; i++) {
        while (!answers(cluster->links[i], err)) {
            bool late = clock_monotonic_us() - start > (uint64_t)ANSWER_MS * 1000;
            if (late || *cluster->options.stop) {
                (void)error_prefix(
                    err, "%s of this job has not answered: ", cluster->links[i]->task);
                err->code = UNAVAILABLE;
                return NULL;
            }
            poll(NULL, 0, LOOK_MS);
        }
    }
    cluster->all.links = cluster->links;
    cluster->all.links_count = cluster->links_count;
    if (cluster->children_count)
        cluster->all.revive = revive, cluster->all.arg = cluster;
    return &cluster->all;
}

/* Asked over a connection of its own: one that was refused fails whatever comes next for a
 * while, and the first step must not be that. */
static bool chief_answers(const struct train_cluster *cluster)
{
    struct error err;
    const struct cluster_spec *tasks = &cluster->tasks;
    const char *address = cluster_spec_address(tasks, spec_role_name(ROLE_WORKER), 0, &err);
    struct worker_link *link = address
                                   ? link_rpc_new(cluster->links[cluster->chief]->task, address,
                                                  certificate_tls(&cluster->certificate), &err)
                                   : NULL;
    bool ok = link && answers(link, &err);
    if (link)
        link_free(link);
    return ok;
}

/* A task that was started again may come when all is over: the first worker is there no more,
 * and nobody will call. */
static bool chief_is_gone(const struct train_cluster *cluster, uint64_t *answered_us)
{
    if (chief_answers(cluster))
        *answered_us = clock_monotonic_us();
    return clock_monotonic_us() - *answered_us > (uint64_t)ANSWER_MS * 1000;
}

bool train_cluster_serve(struct train_cluster *cluster)
{
    struct error gone;
    bool begun = false;
    uint64_t answered_us = clock_monotonic_us();
    for (int looks = 0;; looks++) {
        int sessions = worker_sessions_count(cluster->worker);
        train_moved_tell(cluster->moved);
        begun = begun || sessions;
        if (begun && !sessions)
            return !*cluster->options.stop;
        if (!begun && looks % LOOKS_A_SECOND == 0 && chief_is_gone(cluster, &answered_us))
            return !*cluster->options.stop;
        if (*cluster->options.stop && !answers(cluster->links[cluster->chief], &gone))
            return false;
        poll(NULL, 0, LOOK_MS);
    }
}

static void end_children(struct train_cluster *cluster)
{
    uint64_t start = clock_monotonic_us();
    for (int i = 0; i < cluster->children_count; i++) {
        pid_t pid = cluster->children[i].pid;
        while (pid && !waitpid(pid, NULL, WNOHANG)) {
            if (clock_monotonic_us() - start > (uint64_t)END_MS * 1000)
                kill(pid, SIGKILL);
            poll(NULL, 0, LOOK_MS);
        }
    }
}

void train_cluster_end(struct train_cluster *cluster)
{
    if (!cluster)
        return;
    for (int i = 0; i < cluster->children_count; i++) {
        if (cluster->children[i].pid)
            kill(cluster->children[i].pid, SIGTERM);
    }
    if (cluster->server)
        rpc_server_stop(cluster->server);
    service_free(cluster->service);
    worker_free(cluster->worker);
    for (int i = 0; i < cluster->links_count; i++)
        link_free(cluster->links[i]);
    train_moved_free(cluster->moved);
    end_children(cluster);
    certificate_release(&cluster->certificate);
    pthread_mutex_destroy(&cluster->lock);
    free(cluster->addresses);
    free(cluster->children);
    free(cluster->links);
    arena_free(cluster->arena);
    free(cluster);
}
