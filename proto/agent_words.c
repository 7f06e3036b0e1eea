/* agent_words.c - what states and ends are called, and which task is meant. */

#include "base/base.h"
#include "proto/agent_pb.h"

const char *agent_task_state_name(enum agent_task_state state)
{
    static const char *const names[] = {"unknown", "starting", "running", "exited"};
    return (unsigned)state < (unsigned)ARRAY_LEN(names) ? names[state] : "unknown";
}

const char *agent_exit_reason_name(enum agent_exit_reason reason)
{
    static const char *const names[] = {"none",  "ok",     "stopped", "user",
                                        "crash", "memory", "lost",    "start"};
    return (unsigned)reason < (unsigned)ARRAY_LEN(names) ? names[reason] : "none";
}

bool agent_task_ref_equal(const struct agent_task_ref *a, const struct agent_task_ref *b)
{
    return a->job_id == b->job_id && a->attempt_epoch == b->attempt_epoch &&
           a->index == b->index && strcmp(a->role, b->role) == 0;
}
