/*
 * scheduler_turn.h - whose turn it is, and what the others leave him: what the scheduler's own
 * files ask of scheduler_books.c, scheduler_share.c, scheduler_reserve.c, scheduler_preempt.c,
 * scheduler_after.c, scheduler_failure.c and scheduler_alone.c.
 */
#pragma once

#include "scheduler/fit.h"

struct job;
struct lane;
struct node;
struct project;
struct task;

/* --- scheduler_books.c --- */

/* What a task holds of its node, from its placement to its exit. */
void scheduler_books_take(struct node *node, const struct task *task);
void scheduler_books_give(struct node *node, const struct task *task);

/* What a node has left - or would have, were it empty.  Offered is left to the caller. */
void scheduler_books_read(const struct node *node, bool empty, struct fit_node *out);

/* What all nodes offer now. */
void scheduler_books_offers(const struct scheduler *s, struct fit *fit);

/* Owned copies of needs, and what suits them. */
struct scheduler_need *scheduler_books_needs(const struct scheduler_need *needs, int count);
void scheduler_books_needs_free(struct scheduler_need *needs, int count);
bool **scheduler_books_suits(const struct scheduler *s, const struct scheduler_need *needs,
                             int count);
void scheduler_books_suits_free(bool **suits, int count); /* NULL is fine */

/* What a job asks for, as fit.h wants it; borrowed from the job. */
struct fit_ask scheduler_books_ask(const struct job *job);

/* What its needs ask for altogether, and which nodes suit them; after a change of the needs. */
void scheduler_books_asks(const struct scheduler *s, struct job *job);

/* --- scheduler_share.c --- */

/* By name; made with defaults if it is not there. */
struct lane *scheduler_share_lane(struct scheduler *s, const char *name);
struct project *scheduler_share_project(struct scheduler *s, const char *name);
void scheduler_share_free(struct scheduler *s);

struct scheduler_amount scheduler_share_amount(const struct scheduler_need *needs, int count);
bool scheduler_share_within(const struct scheduler_amount *amount,
                            const struct scheduler_amount *quota);

/* Whether the quota of its project lets the job start beside what the project holds. */
bool scheduler_share_allows(const struct job *job);

/* What is left of `usage` after `age_us`. */
uint64_t scheduler_share_faded(uint64_t usage, uint64_t age_us, uint64_t half_us);

/* The job holds what it asks for, from its placement to the end of the attempt. */
void scheduler_share_take(struct job *job, uint64_t now_us);
void scheduler_share_give(struct scheduler *s, struct job *job, uint64_t now_us,
                          struct scheduler_actions *actions);

/* Sums up what all nodes have, and finds the most of each. */
void scheduler_share_total(struct scheduler *s);

/* Below 0 when `a` is of lower rank: the queue's priority, then the job's. */
int scheduler_share_rank(const struct job *a, const struct job *b);

/* Puts the jobs that wait, and are not held, into s->order. */
void scheduler_share_order(struct scheduler *s, uint64_t now_us);

/* --- scheduler_reserve.c --- */

/* When the job will have ended at the latest, were it started now if it is queued; UINT64_MAX:
 * it has no limit. */
uint64_t scheduler_reserve_end_us(const struct scheduler *s, const struct job *job,
                                  uint64_t now_us);

/*
 * When `head` can start, if all end as late as they may; UINT64_MAX: some have no limit.  What
 * is free then, without what the head takes, is in s->spare.  False when it would not fit on
 * the nodes that offer themselves even if all had ended.
 */
bool scheduler_reserve(struct scheduler *s, const struct job *head, uint64_t now_us,
                       uint64_t *start_us);

/* Sets a node of s->later to the least of s->fit and s->spare. */
void scheduler_reserve_limit(struct scheduler *s, int node);

/* As if all tasks of the job had ended. */
void scheduler_reserve_give(struct fit *fit, const struct job *job);

/* --- scheduler_keep.c --- */

/* Whether each task of the job needs a whole node. */
bool scheduler_keep_suits(const struct scheduler *s, const struct job *job);

/* Closes, in s->fit, a node for each task of such a job: those that will be empty soonest.
 * False, and nothing is closed, when there are too few. */
bool scheduler_keep(struct scheduler *s, const struct job *job, uint64_t now_us);

/* --- scheduler_preempt.c --- */

/* The fewest and least jobs of lower rank whose end lets `head` start, owned; 0 of them when
 * that is not to be had, or on its way already.  Uses s->spare. */
int scheduler_preempt_choose(struct scheduler *s, const struct job *head,
                             struct job ***victims);
bool scheduler_preempt(struct scheduler *s, const struct job *head, uint64_t now_us,
                       struct scheduler_actions *actions);

/* --- scheduler_after.c --- */

/* What a new job comes after. */
void scheduler_after_load(struct scheduler *s, struct job *job,
                          const struct scheduler_job_info *info);

/* Remembers how a job has ended, until those that come after it are told. */
void scheduler_after_note(struct scheduler *s, int64_t job, enum job_state state);

/* Lets go those whose last predecessor has succeeded, and gives up those of which one has not.
 */
void scheduler_after_settle(struct scheduler *s, uint64_t now_us,
                            struct scheduler_actions *actions);

/* --- scheduler_failure.c --- */

/* The job has failed on the node `count` times: perhaps too often to go there again. */
void scheduler_failure_note(struct job *job, int64_t node, int count);

/* One more failure on the node of the task that decided; its own error says nothing of that. */
void scheduler_failure_blame(struct job *job, const struct task *culprit,
                             struct scheduler_actions *actions);

/* --- scheduler_alone.c --- */

/* Whether the others would go on without the task, if it ended so now. */
bool scheduler_alone_may(const struct job *job, const struct task *task,
                         enum exit_reason reason);

/* It has ended so: it is away, until there is room for it. */
void scheduler_alone_lose(struct scheduler *s, struct job *job, struct task *task);

/* Tells of those that went away, when the job goes on. */
void scheduler_alone_tell(struct job *job, struct scheduler_actions *actions);

/* Whether the job ends without asking for this task's end: it is away, or came later. */
bool scheduler_alone_is_extra(const struct job *job, const struct task *task);

/* What one task of the job's alone asks for: borrowed from the job and `need`. */
struct fit_ask scheduler_alone_ask(const struct job *job, const struct task *task,
                                   struct scheduler_need *need);

/* Whether any is away; places those that are, where there is room in s->fit. */
bool scheduler_alone_any(const struct scheduler *s);
void scheduler_alone_place(struct scheduler *s, uint64_t now_us,
                           struct scheduler_actions *actions);

/* When one that is away may be placed anew, of those that may not yet; UINT64_MAX: none.  And
 * that this time has come. */
uint64_t scheduler_alone_next_us(const struct job *job);
void scheduler_alone_tick(struct scheduler *s, struct job *job, uint64_t now_us);
