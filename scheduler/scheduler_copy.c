/* scheduler_copy.c - the whole state once more, to try things on. */

#include "base/alloc.h"
#include "scheduler/internal.h"

/* What a node or a job owns is copied below: a new field of one stops here. */
static_assert(sizeof(struct node) == 296 && sizeof(struct job) == 288,
              "scheduler_copy.c copies all that nodes and jobs own");

/* An array of its own, of `count` elements. */
static void *copy_array(const void *from, int count, size_t size)
{
    void *copy = alloc_array((size_t)count, size);
    if (count)
        memcpy(copy, from, (size_t)count * size);
    return copy;
}

static struct node *copy_node(const struct node *node)
{
    struct node *copy = alloc_bytes(sizeof(*copy));
    *copy = *node;
    copy->name = alloc_text(node->name);
    copy->boot_id = alloc_text(node->boot_id);
    copy->ghosts = copy_array(node->ghosts, node->ghosts_count, sizeof(*copy->ghosts));
    copy->ghosts_capacity = node->ghosts_count;
    return copy;
}

static bool **copy_suits(const struct scheduler *s, const struct job *job)
{
    bool **suits = alloc_array((size_t)job->needs_count, sizeof(*suits));
    for (int i = 0; i < job->needs_count; i++) {
        if (job->suits[i])
            suits[i] = copy_array(job->suits[i], s->match.count, sizeof(**suits));
    }
    return suits;
}

/* The job for `s`, whose nodes, lanes and projects are copied already. */
static struct job *copy_job(const struct scheduler *s, const struct job *job)
{
    struct job *copy = alloc_bytes(sizeof(*copy));
    *copy = *job;
    copy->lane = s->lanes[job->lane->at];
    copy->project = s->projects[job->project->at];
    copy->needs = scheduler_books_needs(job->needs, job->needs_count);
    copy->suits = copy_suits(s, job);
    copy->after = copy_array(job->after, job->after_count, sizeof(*job->after));
    if (job->failures) {
        copy->failures = copy_array(job->failures, job->failures_count, sizeof(*job->failures));
        copy->failures_capacity = job->failures_count;
        copy->excluded = copy_array(job->excluded, job->failures_count, sizeof(*job->excluded));
    }
    if (!job->tasks)
        return copy;
    copy->tasks = copy_array(job->tasks, job->tasks_count, sizeof(*copy->tasks));
    for (int i = 0; i < job->tasks_count; i++)
        copy->tasks[i].node = s->nodes[job->tasks[i].node->at];
    if (job->first_bad)
        copy->first_bad = &copy->tasks[job->first_bad - job->tasks];
    return copy;
}

static void copy_shares(struct scheduler *copy, const struct scheduler *s)
{
    copy->lanes = alloc_array((size_t)s->lanes_count, sizeof(*copy->lanes));
    copy->lanes_capacity = s->lanes_count;
    for (int i = 0; i < s->lanes_count; i++) {
        copy->lanes[i] = alloc_bytes(sizeof(**copy->lanes));
        *copy->lanes[i] = *s->lanes[i];
        copy->lanes[i]->name = alloc_text(s->lanes[i]->name);
    }
    copy->projects = alloc_array((size_t)s->projects_count, sizeof(*copy->projects));
    copy->projects_capacity = s->projects_count;
    for (int i = 0; i < s->projects_count; i++) {
        copy->projects[i] = alloc_bytes(sizeof(**copy->projects));
        *copy->projects[i] = *s->projects[i];
        copy->projects[i]->name = alloc_text(s->projects[i]->name);
    }
}

struct scheduler *scheduler_copy(const struct scheduler *s)
{
    struct scheduler *copy = alloc_bytes(sizeof(*copy));
    *copy = *s;
    match_copy(&copy->match, &s->match);
    copy_shares(copy, s);
    copy->nodes = alloc_array((size_t)s->nodes_count, sizeof(*copy->nodes));
    copy->nodes_capacity = s->nodes_count;
    for (int i = 0; i < s->nodes_count; i++)
        copy->nodes[i] = copy_node(s->nodes[i]);
    copy->jobs = alloc_array((size_t)s->jobs_count, sizeof(*copy->jobs));
    copy->jobs_capacity = s->jobs_count;
    for (int i = 0; i < s->jobs_count; i++)
        copy->jobs[i] = copy_job(copy, s->jobs[i]);
    copy->queue.jobs = alloc_array((size_t)s->queue.count, sizeof(*copy->queue.jobs));
    copy->queue.capacity = s->queue.count;
    for (int i = 0; i < s->queue.count; i++)
        copy->queue.jobs[i] = scheduler_find_job(copy, s->queue.jobs[i]->number);
    copy->ended = copy_array(s->ended, s->ended_count, sizeof(*s->ended));
    copy->ended_capacity = s->ended_count;
    /* What a pass leaves behind is its own. */
    copy->fit = copy->spare = copy->later = (struct fit){0};
    copy->order = NULL;
    copy->order_count = copy->order_capacity = 0;
    return copy;
}
