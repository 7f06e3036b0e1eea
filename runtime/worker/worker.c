/* worker.c - a worker's life, its runs, and what it gives to others. */

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/map.h"
#include "proto/attention.h"
#include "runtime/buffer_shared.h"
#include "runtime/cancel.h"
#include "runtime/held.h"
#include "runtime/machine.h"
#include "runtime/master/node_error.h"
#include "runtime/statistics.h"
#include "runtime/waits.h"
#include "runtime/worker/crew.h"
#include "runtime/worker/internal.h"
#include "runtime/worker/lent.h"
#include "runtime/worker/near.h"

/* --- life --- */

static bool init_device(struct worker *worker, const struct worker_options *options,
                        struct error *err)
{
    struct device *device = &worker->device;
    snprintf(worker->task, sizeof(worker->task), "/job:%s/replica:0/task:%d", options->job,
             options->task);
    snprintf(device->name, sizeof(device->name), "%s/device:CPU:0", worker->task);
    device->type = CPU;
    device->threads = worker->threads;
    device->memory_bytes = machine_memory();
    if (options->memory_bytes_max > 0 && options->memory_bytes_max < device->memory_bytes)
        device->memory_bytes = options->memory_bytes_max;
    device->incarnation = options->incarnation;
    if (!device->incarnation && getrandom(&device->incarnation, sizeof(device->incarnation),
                                          0) != (ssize_t)sizeof(device->incarnation))
        return error_errno(err, INTERNAL, "no random number for the device's incarnation");
    if (!options->incarnation)
        device->incarnation |= 1; /* never 0 */
    return device_name_parse(device->name, &device->parts, err);
}

static int threads_default(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

struct worker *worker_new(const struct worker_options *options, struct error *err)
{
    struct worker *worker = alloc_bytes(sizeof(*worker));
    char host[NEAR_HOST_BYTES];
    buffer_keep_spare();
    if (near_host(host, err))
        buffer_share_large();
    held_set_max(options->held_bytes_max);
    worker->threads = options->threads > 0 ? options->threads : threads_default();
    if (!init_device(worker, options, err)) {
        free(worker);
        return NULL;
    }
    worker->optimise = !options->no_optimise;
    worker->passes_off = options->passes_off;
    worker->memory_bytes_max =
        options->memory_bytes_max > 0 ? options->memory_bytes_max : LIMIT_TENSOR_BYTES;
    if (!options->resources)
        worker->own_resources = resources_new(options->job);
    worker->resources = options->resources ? options->resources : worker->own_resources;
    worker->crew = crew_new(LIMIT_WORKER_THREADS);
    worker->lent = lent_new(LENT_MS);
    worker->groups = groups_new();
    worker->sequences = sequences_new();
    worker->self = worker->leader = link_local_new(worker);
    worker->sessions = map_new();
    pthread_mutex_init(&worker->lock, NULL);
    worker_step_init(&worker->steps);
    return worker;
}

void worker_free(struct worker *worker)
{
    if (!worker)
        return;
    struct error over;
    (void)fail(&over, CANCELLED, "%s ends", worker->task);
    worker_step_end_all(worker);
    groups_abort(worker->groups, &over);
    crew_free(worker->crew);
    lent_free(worker->lent);
    worker_session_free_all(worker);
    worker_step_release(&worker->steps);
    groups_free(worker->groups);
    sequences_free(worker->sequences);
    link_free(worker->self);
    resources_free(worker->own_resources);
    pthread_mutex_destroy(&worker->lock);
    free(worker);
}

/* The link of the task is the leader's; false: no such one does collectives. */
static bool lead(struct worker *worker, const char *task)
{
    for (int i = 0; i < worker->peers_count; i++) {
        struct worker_link *link = worker->peers[i];
        if (strcmp(link->task, task) != 0 || !link->kind->collectives)
            continue;
        worker->leader = strcmp(task, worker->task) ? link : worker->self;
        return true;
    }
    return false;
}

void worker_set_peers(struct worker *worker, struct worker_link *const *links, int count)
{
    const char *first = worker->task;
    worker->peers = links;
    worker->peers_count = count;
    for (int i = 0; i < count; i++)
        if (links[i]->kind->collectives && strcmp(links[i]->task, first) < 0)
            first = links[i]->task;
    if (!lead(worker, "/job:chief/replica:0/task:0") &&
        !lead(worker, "/job:worker/replica:0/task:0"))
        (void)lead(worker, first);
}

bool worker_set_leader(struct worker *worker, const char *task, struct error *err)
{
    return lead(worker, task) ||
           fail(err, INVALID, "'%s' is no task of the cluster that could lead collectives",
                task);
}

const struct device *worker_device(const struct worker *worker)
{
    return &worker->device;
}

const char *worker_task(const struct worker *worker)
{
    return worker->task;
}

/* --- runs --- */

struct running_part {
    struct worker_run *run;
    struct worker_graph *graph;
    struct worker_step *step;
};

bool worker_put_sends(const struct worker_run *run, const struct worker_step *step,
                      struct error *err)
{
    for (int i = 0; i < run->sends_count; i++)
        if (!rendezvous_check_key(run->send_keys[i], err) ||
            !rendezvous_send(step->rendezvous, run->send_keys[i], &run->sends[i], false, err))
            return false;
    return true;
}

/* What a receiver of the end of a run gets: all is there, as sends do not wait. */
struct end {
    struct tensor value;
    bool came, dead;
    struct error err;
};

static void come(void *arg, const struct tensor *value, bool dead, const struct error *err)
{
    struct end *end = arg;
    end->came = true;
    end->dead = dead;
    if (err)
        end->err = *err;
    else if (!dead)
        tensor_share(&end->value, value);
}

static bool take_one(const struct running_part *part, const char *key, struct tensor *out,
                     struct error *err)
{
    struct end end = {.err.code = OK};
    if (!rendezvous_check_key(key, err))
        return false;
    rendezvous_receive_local(part->step->rendezvous, key, come, &end);
    if (!end.came && rendezvous_withdraw(part->step->rendezvous, key, &end))
        return fail(err, INVALID, "no node of the graph sends %s", key);
    if (end.err.code != OK)
        return fail(err, end.err.code, "%s", end.err.text);
    if (end.dead)
        return fail(err, INTERNAL, "The tensor returned for %s was not valid.", key);
    *out = end.value;
    return true;
}

static bool take_receives(const struct running_part *part, struct error *err)
{
    struct worker_run *run = part->run;
    for (int i = 0; i < run->receives_count; i++) {
        if (take_one(part, run->receive_keys[i], &run->received[i], err))
            continue;
        while (i > 0)
            tensor_release(&run->received[--i]);
        return false;
    }
    return true;
}

static bool execute(const struct running_part *part, struct error *err)
{
    const struct worker *worker = part->step->worker;
    struct worker_run *run = part->run;
    struct execute_options options = {.cancel = part->step->cancel,
                                      .rendezvous = part->step->rendezvous,
                                      .collective = &part->step->collective,
                                      .waits = run->waits};
    struct trace trace = {.start_us = clock_wall_us(), .start_ns = clock_monotonic_ns()};
    if (run->step_stats)
        options.trace = &trace;
    bool ok =
        part->graph->plan || fail(err, part->graph->fault.code, "%s", part->graph->fault.text);
    ok = ok && execute_plan(part->graph->plan, NULL, NULL, &options, err);
    if (run->waits)
        run->waits->total_ns = clock_monotonic_ns() - trace.start_ns;
    if (ok && run->step_stats)
        statistics_add_step(&worker->device, &trace, run->step_stats);
    if (ok && run->graph_def)
        graph_export(part->graph->graph, true, 0, run->graph_def);
    trace_release(&trace);
    return ok;
}

/* A part is only cancelled because its step is over: the reason is elsewhere. */
static void mark_derived(const struct running_part *part, struct error *err)
{
    if (err->code == CANCELLED && cancel_requested(part->step->cancel) &&
        strncmp(err->text, EXECUTE_DERIVED, strlen(EXECUTE_DERIVED)) != 0)
        (void)error_prefix(err, EXECUTE_DERIVED);
}

static void run_part(void *arg)
{
    struct running_part *part = arg;
    struct worker_run *run = part->run;
    struct error err;
    attention_begin();
    bool ok = worker_put_sends(run, part->step, &err) && execute(part, &err) &&
              take_receives(part, &err);
    attention_end();
    if (!ok) {
        node_error(&err);
        mark_derived(part, &err);
        rendezvous_abort(part->step->rendezvous, &err);
    }
    run->ended = ok && run->may_end && worker_step_end_idle(part->step);
    worker_session_unref_graph(part->graph);
    worker_step_unref(part->step);
    free(part);
    run->done(run, ok ? NULL : &err);
}

static void run_graph(struct worker *worker, struct worker_run *run, bool here)
{
    struct error err;
    struct running_part *part = alloc_bytes(sizeof(*part));
    part->run = run;
    part->graph = worker_session_graph(worker, run->session, run->graph, &err);
    if (part->graph)
        part->step = worker_step_ref(worker, run->step_id, &err);
    if (part->step && here) {
        run_part(part);
        return;
    }
    if (part->step && crew_do(worker->crew, run_part, part, &err))
        return;
    if (part->step) {
        rendezvous_abort(part->step->rendezvous, &err);
        worker_step_unref(part->step);
    }
    if (part->graph)
        worker_session_unref_graph(part->graph);
    free(part);
    run->done(run, &err);
}

void worker_run_graph(struct worker *worker, struct worker_run *run)
{
    if (run->partial)
        worker_partial_run(worker, run);
    else
        run_graph(worker, run, false);
}

void worker_run_graph_here(struct worker *worker, struct worker_run *run)
{
    assert(!run->partial);
    run_graph(worker, run, true);
}

void worker_cleanup_graph(struct worker *worker, int64_t step_id)
{
    worker_step_end(worker, step_id);
}

void worker_cleanup_all(struct worker *worker, const char *const *containers, int count)
{
    if (!count)
        resources_clear(worker->resources, "");
    for (int i = 0; i < count; i++)
        resources_clear(worker->resources, containers[i]);
}

bool worker_send(struct worker *worker, int64_t step_id, const char *key,
                 const struct tensor *value, struct error *err)
{
    struct worker_step *step =
        rendezvous_check_key(key, err) ? worker_step_ref(worker, step_id, err) : NULL;
    bool ok = step && rendezvous_send(step->rendezvous, key, value, false, err);
    if (step)
        worker_step_unref(step);
    return ok;
}

/* --- what it gives --- */

/* The key's second part must be what the device of this process has. */
static bool check_sender(const struct worker *worker, const char *key, struct error *err)
{
    if (!rendezvous_check_key(key, err))
        return false;
    size_t size = strcspn(key, ";");
    if (size != strlen(worker->device.name) || memcmp(key, worker->device.name, size) != 0)
        return fail(err, INVALID, "%s has no device %.*s", worker->task, (int)size, key);
    char *end;
    uint64_t incarnation = strtoull(key + size + 1, &end, 16);
    if (*end != ';' || end - (key + size + 1) != 16)
        return fail(err, INVALID, "Invalid  rendezvous key: %s", key);
    if (incarnation != worker->device.incarnation)
        return fail(err, ABORTED,
                    "RecvTensor expects a different device incarnation: %" PRIu64
                    " vs. %" PRIu64
                    ". Your worker job (\"%s\") was probably restarted. Check your worker job "
                    "for the reason why it was restarted.",
                    incarnation, worker->device.incarnation, worker->task);
    return true;
}

void worker_receive(struct worker *worker, int64_t step_id, const char *key,
                    rendezvous_receiver *receiver, void *arg)
{
    struct error err;
    struct worker_step *step =
        check_sender(worker, key, &err) ? worker_step_ref(worker, step_id, &err) : NULL;
    if (!step) {
        receiver(arg, NULL, false, &err);
        return;
    }
    rendezvous_receive_local(step->rendezvous, key, receiver, arg);
    worker_step_unref(step);
}

bool worker_withdraw(struct worker *worker, int64_t step_id, const char *key, const void *arg)
{
    struct error err;
    struct worker_step *step = worker_step_ref(worker, step_id, &err);
    bool withdrawn = step && rendezvous_withdraw(step->rendezvous, key, arg);
    if (step)
        worker_step_unref(step);
    return withdrawn;
}

bool worker_lend(struct worker *worker, const struct loan *loan, const struct tensor *tensor,
                 struct near_place *place, struct fabric_keys *keys)
{
    if (!lent_add(worker->lent, loan, tensor, place, keys))
        return false;
    /* The step may have ended since it gave the tensor, and its loans with it. */
    bool over = worker_step_is_over(worker, loan->step_id);
    if (over)
        (void)lent_end(worker->lent, loan->request_id);
    return !over;
}

bool worker_lend_end(struct worker *worker, int64_t request_id)
{
    return lent_end(worker->lent, request_id);
}

int worker_lent_count(const struct worker *worker)
{
    return lent_count(worker->lent);
}
