/*
 * queues.h - queues, and projects with their quotas and what they have used.
 */
#pragma once

#include "db/db.h"

struct db_queue {
    const char *name;
    int priority; /* 0 to 100: its jobs come before those of lower queues */
    int weight;   /* 1 to 1000: its share beside queues of the same priority */
    bool preempt; /* its jobs may end attempts of jobs of lower rank */
};

struct db_project {
    const char *name;
    int weight;         /* 1 to 1000: its share beside other projects */
    int64_t cpu_millis; /* quota, of what it may hold at once; -1: no bound */
    int64_t memory_bytes;
    int64_t gpu_millis;
    int64_t jobs;
    int64_t usage; /* as the scheduler reckons it, at usage_us */
    int64_t usage_us;
    int64_t cpu_ms; /* used over all time: CPUs times milliseconds */
    int64_t gpu_ms;
};

/* By name. */
bool db_queues_list(struct db_conn *conn, struct arena *arena, struct db_queue **queues,
                    int *queues_count, struct error *err) CHECKED;
bool db_projects_list(struct db_conn *conn, struct arena *arena, struct db_project **projects,
                      int *projects_count, struct error *err) CHECKED;

/* Adds the queue, or changes it.  Returns after the commit. */
bool db_queues_set(struct db *db, const struct db_queue *queue, struct error *err) CHECKED;

/* The same for weight and quota of a project; what it has used stays. */
bool db_projects_set(struct db *db, const struct db_project *project,
                     struct error *err) CHECKED;

/* An attempt has ended: what it cost, and the project's usage with it.  For the scheduler's
 * loop, inside its transaction. */
bool db_projects_charge(struct db_conn *conn, const char *project, int64_t usage,
                        int64_t cpu_ms, int64_t gpu_ms, int64_t now_us,
                        struct error *err) CHECKED;
