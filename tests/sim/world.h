/*
 * world.h - a server, its nodes and the network between them, all of it in virtual time.
 *
 * The server is the production scheduler with a store, agents decide by the production core;
 * machines, tasks and messages are made up.  Faults are drawn from the seed.
 */
#pragma once

#include "tests/sim/random.h"
#include "tests/sim/store.h"

struct arena;

#define WORLD_NODE_TASKS_MAX 512

/* Fault classes; a seed enables some of them. */
enum fault {
    FAULT_DROP,         /* messages are lost */
    FAULT_DUPLICATE,    /* ... come twice */
    FAULT_DELAY,        /* ... come late, and so in another order */
    FAULT_CUT,          /* one direction of a node's link is cut for a while */
    FAULT_AGENT_CRASH,  /* the agent dies and comes back; its tasks run on */
    FAULT_REBOOT,       /* the machine dies with its tasks, and comes back */
    FAULT_SERVER_CRASH, /* before or after a commit, or between */
    FAULT_SERVER_STALL, /* it stands still for a while */
    FAULT_TASK,         /* tasks crash, hang, cannot start, or cannot be killed */
    FAULT_USER,         /* people cancel, kill and drain */
    FAULT_ENGINE,       /* an engine says that a machine is gone; not always is it */
    FAULT_GPU,          /* GPUs are lost or used by others, and come back */
    FAULTS_COUNT,
};

struct world_result {
    uint64_t hash;
    int events;
    int jobs;
    uint64_t virtual_us;
    uint32_t edges[JOB_STATES_COUNT][JOB_STATES_COUNT];
};

/* Plays one seed to its end; breaks off by sim_broken().  With `sqlite` the server's store is
 * SQLite (disk.h), beside the fold that watches over it. */
struct world_result world_run(uint64_t seed, bool trace, bool sqlite);
