/*
 * settings.h - what a server is told of its engine: one JSON file (docs/engines.md).
 */
#pragma once

#include "scheduler/demand.h"
#include "scheduler/engines/pilots.h"

struct arena;
struct error;

#define SETTINGS_QUEUES_MAX 32
#define SETTINGS_WORDS_MAX 64

/* What pilots of one queue are, and what they are asked for with. */
struct settings_queue {
    struct pilots_bounds bounds;
    struct scheduler_node_info like; /* what each lends */
    const char *labels;              /* NAME=VALUE,NAME=VALUE; "" */
    const char *partition;           /* slurm; "": the engine's default, as below */
    const char *account;
    const char *qos;
    int64_t time_minutes;       /* longest life of a pilot; 0: the engine's default */
    const char *const *options; /* more words for sbatch; NULL ends */
    const char *node_selector;  /* kubernetes: a JSON object */
};

struct settings {
    const char *engine; /* "slurm" or "kubernetes" */
    const char *server; /* HOST:PORT that agents call; "": where the server listens */
    const char *agent;  /* the program trainyard, on the engine's machines */
    const char *const *agent_options; /* more words for `trainyard agent`; NULL ends */
    const char *folder;               /* on those machines: each pilot has one below it */
    int64_t poll_ms;
    int64_t grace_s; /* for tasks, from TERM to the pilot's script to its end */
    struct settings_queue *queues;
    int queues_count;

    const char *bin;  /* slurm: the folder of sbatch, squeue and scancel; "": PATH */
    const char *logs; /* slurm: the folder of the pilots' output, on those machines */

    const char *url; /* kubernetes: of its API; "": from the pod that we run in */
    const char *namespace;
    const char *token_file;
    const char *ca_file;
    const char *image;
    const char *claim;      /* the persistent volume claim that is the server's folder: pods
                               mount its jobs and datasets ... */
    const char *claim_path; /* ... where the server has them; both or none */
};

/* Reads and checks the file; all lives in the arena.  INVALID at the field at fault, with its
 * value and limit. */
bool settings_read(const char *path, struct arena *arena, struct settings *settings,
                   struct error *err) CHECKED;

/* The same of a text. */
bool settings_parse(const char *text, size_t size, struct arena *arena,
                    struct settings *settings, struct error *err) CHECKED;
