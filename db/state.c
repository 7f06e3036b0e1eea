/* state.c - the names of states, reasons and roles. */

#include "db/state.h"

static const char *const job_states[] = {
    "queued",   "allocated", "starting", "running",
    "stopping", "succeeded", "failed",   "cancelled",
};
static const char *const task_states[] = {"waiting", "starting", "running", "exited"};
static const char *const exit_reasons[] = {
    "", "ok", "stopped", "user", "crash", "memory", "lost", "start",
};
static const char *const node_states[] = {"joined", "suspect", "lost"};
static const char *const user_roles[] = {"none", "viewer", "member", "admin"};

static int name_index(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

const char *db_job_state_name(enum job_state state)
{
    assert((int)state >= 0 && (int)state < ARRAY_LEN(job_states));
    return job_states[state];
}

bool db_job_state_find(const char *name, enum job_state *state)
{
    int index = name_index(job_states, ARRAY_LEN(job_states), name);
    if (index < 0)
        return false;
    *state = (enum job_state)index;
    return true;
}

bool db_job_state_final(enum job_state state)
{
    return state == JOB_SUCCEEDED || state == JOB_FAILED || state == JOB_CANCELLED;
}

const char *db_task_state_name(enum task_state state)
{
    assert((int)state >= 0 && (int)state < ARRAY_LEN(task_states));
    return task_states[state];
}

const char *db_exit_reason_name(enum exit_reason reason)
{
    assert((int)reason >= 0 && (int)reason < ARRAY_LEN(exit_reasons));
    return exit_reasons[reason];
}

const char *db_node_state_name(enum node_state state)
{
    assert((int)state >= 0 && (int)state < ARRAY_LEN(node_states));
    return node_states[state];
}

const char *db_role_name(enum user_role role)
{
    assert(role >= ROLE_NONE && role <= ROLE_ADMIN);
    return user_roles[role - ROLE_NONE];
}

bool db_role_find(const char *name, enum user_role *role)
{
    int index = name_index(user_roles, ARRAY_LEN(user_roles), name);
    if (index < 0)
        return false;
    *role = (enum user_role)(index + ROLE_NONE);
    return true;
}
