/* scheduler_intent.c - why a job is stopping, in words that are stored. */

#include "base/arena.h"
#include "scheduler/internal.h"

static const char *const intents[] = {"",       "DONE",    "FAULT", "TIME",
                                      "CANCEL", "PREEMPT", "PAUSE"};

enum intent scheduler_intent(const char *reason, bool *killed)
{
    *killed = strcmp(reason, "KILL") == 0;
    if (*killed)
        return INTENT_CANCEL;
    for (int i = 1; i < ARRAY_LEN(intents); i++) {
        if (strcmp(intents[i], reason) == 0)
            return (enum intent)i;
    }
    return INTENT_FAULT; /* of another version: then the tasks' own ends decide */
}

const char *scheduler_intent_name(const struct job *job)
{
    return job->killed ? "KILL" : intents[job->intent];
}

void scheduler_intent_note(const struct job *job, const char *text,
                           struct scheduler_actions *actions)
{
    struct scheduler_action *note = scheduler_act(actions, DO_NOTE);
    note->job = job->number;
    note->attempt = job->attempt;
    note->restarts = job->restarts;
    note->reason = scheduler_intent_name(job);
    note->text = text;
}

static const char *exit_words(enum exit_reason reason)
{
    switch (reason) {
    case EXIT_STOPPED:
        return "was stopped from outside";
    case EXIT_USER:
        return "failed by its own error";
    case EXIT_MEMORY:
        return "was killed for using more memory than it asked for";
    case EXIT_LOST:
        return "was lost with its node";
    case EXIT_START:
        return "could not be started";
    default:
        return "crashed";
    }
}

const char *scheduler_intent_culprit(const struct task *task, struct arena *arena)
{
    return arena_printf(arena, "%s:%d on %s %s", task->role, task->index, task->node->name,
                        exit_words(task->reason));
}
