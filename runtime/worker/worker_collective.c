/* worker_collective.c - what other tasks, and the own master, ask a worker of collectives. */

#include <inttypes.h>

#include "runtime/worker/internal.h"

struct groups *worker_collective_groups(struct worker *worker)
{
    return worker->groups;
}

bool worker_collective_next_step(struct worker *worker, int64_t graph_key, int64_t *step_id,
                                 struct error *err)
{
    struct worker_link *leader = worker->leader;
    if (leader == worker->self)
        return worker_collective_sequence(worker, graph_key, step_id, err);
    if (sequences_next(worker->sequences, graph_key, false, step_id))
        return true;
    if (!leader->kind->collectives->step_sequence(leader, graph_key, step_id, err))
        return false;
    sequences_set(worker->sequences, graph_key, *step_id);
    return true;
}

void worker_collective_retire_step(struct worker *worker, int64_t graph_key, int64_t step_id)
{
    sequences_retire(worker->sequences, graph_key, step_id);
}

bool worker_collective_sequence(struct worker *worker, int64_t graph_key, int64_t *step_id,
                                struct error *err)
{
    if (worker->leader != worker->self)
        return fail(err, INTERNAL, "GetStepSequenceAsync called at non-group-leader");
    return sequences_next(worker->sequences, graph_key, true, step_id) ||
           fail(err, EXHAUSTED, "too many graphs with collectives are known already");
}

void worker_collective_take(struct worker *worker, int64_t step_id, const char *key,
                            const char *device, uint64_t incarnation, buffers_taker *taker,
                            void *arg)
{
    struct error err;
    bool ok = !strcmp(device, worker->device.name) ||
              fail(&err, INVALID, "%s has no device %s", worker->task, device);
    if (ok && incarnation && incarnation != worker->device.incarnation)
        ok = fail(&err, PRECONDITION,
                  "RecvBuf expects a different device incarnation: %" PRIu64 " vs. %" PRIu64
                  ". Your worker job that contains device (\"%s\") was probably restarted. "
                  "Check your worker job for the reason why it was restarted.",
                  incarnation, worker->device.incarnation, device);
    struct worker_step *step = ok ? worker_step_ref(worker, step_id, &err) : NULL;
    if (!step) {
        taker(arg, NULL, &err);
        return;
    }
    buffers_take(collective_buffers(&step->collective), key, taker, arg);
    worker_step_unref(step);
}

bool worker_collective_withdraw(struct worker *worker, int64_t step_id, const void *arg)
{
    struct error err;
    struct worker_step *step = worker_step_ref(worker, step_id, &err);
    if (!step)
        return false;
    bool withdrawn = buffers_withdraw(collective_buffers(&step->collective), arg);
    worker_step_unref(step);
    return withdrawn;
}
