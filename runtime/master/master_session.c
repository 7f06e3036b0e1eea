/* master_session.c - one session: here, or over the tasks of a cluster. */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/message_cursor.h"
#include "runtime/cluster/cluster.h"
#include "runtime/device.h"
#include "runtime/master/internal.h"
#include "runtime/resource.h"
#include "runtime/session.h"
#include "runtime/worker/link.h"

/* The graph runs in this process. */
static bool open_here(struct master_session *session, const struct master_config *config,
                      struct error *err)
{
    const struct master_options *options = session->options;
    if (config->isolate)
        session->own_resources = resources_new(options->device->parts.job);
    const struct session_options here = {
        .threads = options->threads,
        .device = options->device,
        .soft_placement = config->soft_placement,
        .resources = config->isolate ? session->own_resources : options->resources,
    };
    session->here = session_new(&here, err);
    return session->here;
}

static bool open_cluster(struct master_session *session, const struct master_config *config,
                         struct cancel *wait, struct error *err)
{
    const struct cluster_options options = {
        .links = session->options->links,
        .links_count = session->options->links_count,
        .home = session->options->home,
        .filters = config->device_filters,
        .filters_count = config->device_filters_count,
        .soft_placement = config->soft_placement,
        .compress = config->compress,
        .by_cost = config->by_cost,
        .isolate = config->isolate,
        .wait = wait,
    };
    session->cluster = cluster_session_new(&options, session->handle, err);
    return session->cluster;
}

/* Tasks have the names with which they were started; TensorFlow would give some others. */
static bool refuse_cluster(const struct master *master, const struct master_config *config,
                           struct error *err)
{
    static const char scheme[] = "grpc://";
    const struct device_name *own = &master->options.device->parts;
    const char *target = config->target;
    if (!strncmp(target, scheme, sizeof(scheme) - 1))
        target += sizeof(scheme) - 1;
    struct str tasks = {0};
    for (int i = 0; i < config->cluster_count; i++) {
        const struct master_cluster_task *one = &config->cluster[i];
        str_printf(&tasks, "%s/job:%s/task:%d at %s", i ? ", " : "", one->job, one->task,
                   one->address);
        if (strcmp(one->address, target) != 0)
            continue;
        str_release(&tasks);
        if (!strcmp(one->job, own->job) && one->task == own->task)
            return fail(
                err, INVALID,
                "The ClusterSpec names the job and task index to be the same names that "
                "were provided when the server booted. This is currently not allowed. "
                "Job: %s, task index: %d",
                one->job, one->task);
        return fail(err, UNIMPLEMENTED,
                    "ConfigProto.cluster_def calls this task /job:%s/task:%d, but it is %s: "
                    "tasks are known by the names with which they were started",
                    one->job, one->task, master->options.device->name);
    }
    (void)fail(err, INVALID,
               "The master (current machine) is not included in the provided cluster_def: %s",
               str_text(&tasks));
    str_release(&tasks);
    return false;
}

struct master_session *master_session_new(struct master *master,
                                          const struct master_config *config,
                                          const char *handle, struct cancel *wait,
                                          struct error *err)
{
    if (config->own_threads)
        return fail_null(err, INVALID,
                         "Distributed session does not support session thread pool options.");
    if (config->cluster_count && !refuse_cluster(master, config, err))
        return NULL;
    struct master_session *session = alloc_bytes(sizeof(*session));
    snprintf(session->handle, sizeof(session->handle), "%s", handle);
    session->options = &master->options;
    session->timeout_ms = config->timeout_ms;
    atomic_init(&session->references, 1);
    pthread_mutex_init(&session->extending, NULL);
    pthread_mutex_init(&session->lock, NULL);
    bool ok = master->options.links_count > 1 ? open_cluster(session, config, wait, err)
                                              : open_here(session, config, err);
    if (ok)
        return session;
    master_release(session);
    return NULL;
}

void master_session_close(struct master_session *session)
{
    if (session->here)
        session_close(session->here);
    if (session->cluster)
        cluster_session_close(session->cluster);
}

void master_release(struct master_session *session)
{
    atomic_store(&session->used_us, clock_monotonic_us());
    if (atomic_fetch_sub(&session->references, 1) != 1)
        return;
    master_partials_free(session);
    master_callables_free(session);
    session_free(session->here);
    resources_free(session->own_resources);
    cluster_session_free(session->cluster);
    pthread_mutex_destroy(&session->extending);
    pthread_mutex_destroy(&session->lock);
    free(session);
}

bool master_extend(struct master_session *session, int64_t expected, const void *graph_def,
                   size_t size, int64_t *version, struct error *err)
{
    pthread_mutex_lock(&session->extending);
    bool ok = session->version == expected ||
              fail(err, ABORTED, "Current version is %lld but caller expected %lld.",
                   (long long)session->version, (long long)expected);
    ok = ok && (session->here ? session_extend(session->here, graph_def, size, err)
                              : cluster_session_extend(session->cluster, graph_def, size, err));
    if (ok)
        *version = ++session->version;
    pthread_mutex_unlock(&session->extending);
    return ok;
}

/* A dead tensor that is fetched has another error for clients of a server than in a process. */
static bool tell_dead(const struct session_run *run, struct error *err)
{
    int index;
    if (err->code != INVALID ||
        sscanf(err->text, "Retval[%d] does not have value", &index) != 1 || index < 0 ||
        index >= run->fetches_count)
        return false;
    return fail(err, INTERNAL, "The tensor returned for %s was not valid.",
                run->fetches[index]);
}

/* A step that goes on when its session is closed is told so in other words than a later one. */
static bool tell_closed(struct error *err)
{
    return err->code == CANCELLED && !strcmp(err->text, "Session has been closed.") &&
           fail(err, CANCELLED,
                "Step was cancelled by an explicit call to `Session::Close()`.");
}

bool master_run(struct master_session *session, const struct session_run *run,
                struct tensor *fetched, struct error *err)
{
    struct session_run limited = *run;
    if (!limited.timeout_ms)
        limited.timeout_ms = session->timeout_ms;
    bool ok = session->here ? session_run(session->here, &limited, fetched, err)
                            : cluster_session_run(session->cluster, &limited, fetched, err);
    return ok || tell_closed(err) || tell_dead(run, err);
}

/* RunMetadata.partition_graphs is field 3; fields that are appended are merged. */
static void add_part(struct str *metadata, const char *graph_def, size_t size)
{
    message_add_varint(metadata, MESSAGE_TAG(3));
    message_add_varint(metadata, size);
    str_add_bytes(metadata, graph_def, size);
}

bool master_add_parts(struct master_session *session, const struct session_run *run,
                      struct str *metadata, struct error *err)
{
    struct str graphs = {0};
    size_t *ends = NULL, begin = 0;
    int count = 1;
    bool ok = session->here
                  ? session_export(session->here, run, &graphs, err)
                  : cluster_session_parts(session->cluster, run, &graphs, &ends, &count, err);
    for (int i = 0; ok && i < count; i++) {
        size_t end = ends ? ends[i] : graphs.size;
        add_part(metadata, graphs.data + begin, end - begin);
        begin = end;
    }
    free(ends);
    str_release(&graphs);
    return ok;
}

const struct device *master_devices(const struct master_session *session, int *count,
                                    int *local_count)
{
    *local_count = 1;
    if (session->cluster)
        return cluster_session_devices(session->cluster, count);
    *count = 1;
    return session->options->device;
}
