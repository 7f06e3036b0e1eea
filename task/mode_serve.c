/* mode_serve.c - a task of a cluster: clients and other tasks drive it over gRPC. */

#include "task/mode_serve.h"

#include <signal.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"
#include "proto/rpc.h"
#include "runtime/master/master.h"
#include "runtime/master/master_service.h"
#include "runtime/resource.h"
#include "runtime/worker/fabric.h"
#include "runtime/worker/link.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"
#include "task/arguments.h"
#include "task/certificate.h"
#include "task/cluster_idle.h"
#include "task/cluster_spec.h"

#define IDLE_MAX_S (30 * 24 * 3600)
#define LOOK_MIN_MS 100
#define LOOK_MAX_MS 5000
#define EXIT_CODE_STOPPED 3

static const char usage[] =
    "usage: trainyard-task --insecure --cluster FILE --job NAME --task N [options]\n"
    "\n"
    "Serves one task of a cluster, as a TensorFlow server does: clients drive it with\n"
    "tf.compat.v1.Session(\"grpc://host:port\"), other tasks exchange tensors with it.\n"
    "\n"
    "  --cluster FILE   {\"ps\": [\"host:port\", ...], \"worker\": [...]}, or that text "
    "itself\n"
    "  --job NAME       which job of it this is\n"
    "  --task N         which task of that job, from 0\n"
    "                   (all three come from TF_CONFIG where they are not given)\n"
    "  --threads N      for kernels (all processors that it may use)\n"
    "  --exchange-bytes N  of tensors between tasks: those that wait to be received, are\n"
    "                   on their way, or are lent; steps that need more fail with\n"
    "                   RESOURCE_EXHAUSTED (half of the memory that it may use)\n"
    "  --insecure       serve without encryption, on a loopback address\n"
    "  --certificate F  PEM, with its key: all tasks and clients show one by this authority\n"
    "  --collective-leader T  the task that knows who takes part in collectives, the same\n"
    "                   for all: /job:NAME/replica:0/task:N (the first chief, else worker)\n"
    "  --idle-seconds N end when no client has used any of the tasks for so long\n";

struct serving {
    struct arena *arena;
    struct cluster_spec spec;
    const char *address;
    int threads;
    int64_t exchange_bytes;
    const char *leader; /* of collectives; NULL: as it is */
    struct certificate certificate;
    int64_t idle_seconds; /* 0: it ends when it is told */
    struct resources *resources;
    struct worker *worker;
    struct worker_link **links;
    int links_count;
    int home;
    struct master *master;
    struct service *worker_service;
    struct master_service *master_service;
    struct rpc_service workers; /* beside the master's methods */
    struct cluster_idle *idle;
    struct rpc_service idles;
    struct rpc_server *server;
};

bool mode_serve_wanted(int argc, char **argv)
{
    return argc > 1 && argv[1][0] == '-' && strcmp(argv[1], "--help") != 0;
}

/* --- arguments --- */

static bool read_arguments(int argc, char **argv, struct serving *serving, struct error *err)
{
    const char *cluster = NULL, *job = NULL, *config = getenv("TF_CONFIG"), *pem = NULL;
    int64_t task = -1, threads = 0;
    bool insecure = false;
    int words;
    const struct argument rows[] = {
        {.name = "--cluster", .text = &cluster},
        {.name = "--job", .text = &job},
        {.name = "--task", .number = &task, .max = 9999},
        {.name = "--threads", .number = &threads, .max = 1024},
        {.name = "--exchange-bytes", .number = &serving->exchange_bytes, .max = INT64_MAX},
        {.name = "--insecure", .flag = &insecure},
        {.name = "--certificate", .text = &pem},
        {.name = "--collective-leader", .text = &serving->leader},
        {.name = "--idle-seconds", .number = &serving->idle_seconds, .max = IDLE_MAX_S},
    };
    if (!arguments_read(argc, argv, rows, ARRAY_LEN(rows), NULL, 0, &words, err))
        return false;
    if (!insecure && !pem)
        return fail(err, INVALID,
                    "a task that is started by hand serves without encryption: say --insecure");
    if (insecure && pem)
        return fail(err, INVALID, "allowed: one of --insecure and --certificate");
    if (!cluster && !config)
        return fail(err, INVALID, "--cluster is missing, and TF_CONFIG is not set");
    bool ok = cluster ? cluster_spec_read(cluster, serving->arena, &serving->spec, err)
                      : cluster_spec_read_config(config, serving->arena, &serving->spec, err);
    if (!ok || !certificate_read(pem, &serving->certificate, err))
        return false;
    if (job)
        serving->spec.job = job;
    if (task >= 0)
        serving->spec.task = (int)task;
    if (!serving->spec.job || serving->spec.task < 0)
        return fail(err, INVALID,
                    "--job and --task are missing: which task of the cluster is this?");
    serving->threads = arguments_set_threads(threads);
    serving->address =
        cluster_spec_address(&serving->spec, serving->spec.job, serving->spec.task, err);
    return serving->address;
}

/* --- what is served --- */

static bool link_tasks(struct serving *serving, struct error *err)
{
    const struct cluster_spec *spec = &serving->spec;
    serving->links = alloc_array((size_t)cluster_spec_tasks(spec), sizeof(*serving->links));
    for (int j = 0; j < spec->jobs_count; j++) {
        for (int t = 0; t < spec->jobs[j].tasks_count; t++) {
            bool here = !strcmp(spec->jobs[j].name, spec->job) && t == spec->task;
            char name[96];
            snprintf(name, sizeof(name), "/job:%s/replica:0/task:%d", spec->jobs[j].name, t);
            struct worker_link *link =
                here ? link_local_new(serving->worker)
                     : link_rpc_new(name, spec->jobs[j].addresses[t],
                                    certificate_tls(&serving->certificate), err);
            if (!link)
                return false;
            if (here)
                serving->home = serving->links_count;
            serving->links[serving->links_count++] = link;
        }
    }
    return true;
}

static bool start(struct serving *serving, struct error *err)
{
    const struct cluster_spec *spec = &serving->spec;
    if (!fabric_open_wanted(err))
        return false;
    serving->resources = resources_new(spec->job);
    serving->worker =
        worker_new(&(struct worker_options){.job = spec->job,
                                            .task = spec->task,
                                            .threads = serving->threads,
                                            .resources = serving->resources,
                                            .held_bytes_max = serving->exchange_bytes},
                   err);
    if (!serving->worker || !link_tasks(serving, err))
        return false;
    worker_set_peers(serving->worker, serving->links, serving->links_count);
    if (serving->leader && !worker_set_leader(serving->worker, serving->leader, err))
        return false;
    serving->master = master_new(&(struct master_options){
        .links = serving->links,
        .links_count = serving->links_count,
        .home = serving->home,
        .device = worker_device(serving->worker),
        .threads = serving->threads,
        .resources = serving->resources,
    });
    serving->worker_service = service_new(serving->worker);
    serving->master_service = master_service_new(serving->master);
    const struct rpc_tls *tls = certificate_tls(&serving->certificate);
    serving->idle = cluster_idle_new(spec, tls, serving->master, err);
    if (!serving->idle)
        return false;
    serving->idles = (struct rpc_service){cluster_idle_methods, serving->idle, NULL};
    serving->workers =
        (struct rpc_service){service_methods, serving->worker_service, &serving->idles};
    const struct rpc_server_options options = {.address = serving->address,
                                               .message_bytes_max = LIMIT_MESSAGE_BYTES - 1,
                                               .tls = tls,
                                               .more = &serving->workers};
    serving->server =
        rpc_server_start(&options, master_service_methods, serving->master_service, err);
    return serving->server;
}

static void end(struct serving *serving)
{
    if (serving->server)
        rpc_server_stop(serving->server);
    if (serving->master)
        master_stop(serving->master); /* what still runs ends */
    cluster_idle_free(serving->idle);
    master_service_free(serving->master_service);
    master_free(serving->master);
    service_free(serving->worker_service);
    worker_free(serving->worker);
    for (int i = 0; i < serving->links_count; i++)
        link_free(serving->links[i]);
    free(serving->links);
    resources_free(serving->resources);
    certificate_release(&serving->certificate);
    arena_free(serving->arena);
}

/* Until it is told to end, or nobody needs it.  Its exit code: what a server started has done
 * its work only when it was left alone. */
static int wait_for_end(struct serving *serving, const sigset_t *signals)
{
    /* Ten looks in the time that is waited for, but neither many nor few. */
    int64_t look_ms = serving->idle_seconds * 100;
    look_ms = look_ms < LOOK_MIN_MS   ? LOOK_MIN_MS
              : look_ms > LOOK_MAX_MS ? LOOK_MAX_MS
                                      : look_ms;
    const struct timespec look = {look_ms / 1000, look_ms % 1000 * 1000000};
    while (sigtimedwait(signals, NULL, serving->idle_seconds ? &look : NULL) < 0) {
        if (serving->idle_seconds &&
            cluster_idle_is_over(serving->idle, serving->idle_seconds)) {
            printf("ends: no client has used it for %lld s\n",
                   (long long)serving->idle_seconds);
            return 0;
        }
    }
    return serving->certificate.tls.certificate ? EXIT_CODE_STOPPED : 0;
}

int mode_serve(int argc, char **argv)
{
    struct serving serving = {.arena = arena_new()};
    struct error err;
    sigset_t signals;
    /* Before there are threads: all of them leave these to this one. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    int code = 0;
    if (read_arguments(argc, argv, &serving, &err) && start(&serving, &err)) {
        printf("ready: %s%s serves /job:%s/replica:0/task:%d of %d\n",
               certificate_tls(&serving.certificate) ? "" : "grpc://",
               rpc_server_address(serving.server), serving.spec.job, serving.spec.task,
               cluster_spec_tasks(&serving.spec));
        fflush(stdout);
        code = wait_for_end(&serving, &signals);
    } else {
        fprintf(stderr, "trainyard-task: %s\n", err.text);
        if (err.code == INVALID)
            fputs(usage, stderr);
        code = arguments_exit_code(&err);
    }
    end(&serving);
    return code;
}
