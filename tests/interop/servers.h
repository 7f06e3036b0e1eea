/*
 * servers.h - tasks of a cluster in this process, as trainyard-task serves them: each a master
 * and a worker on a loopback port.
 */
#pragma once

#include "proto/rpc.h"

struct error;
struct session_options;

enum { SERVERS_MAX = 8 };

/* Task 0 is a worker; of several, 1 is a parameter server, the others are workers. */
struct servers {
    struct server_task {
        struct resources *resources;
        struct worker *worker;
        struct service *service;
        struct master *master;
        struct master_service *master_service;
        struct rpc_service workers; /* beside the master's methods */
        struct rpc_server *server;
        struct worker_link *links[SERVERS_MAX];
        int links_count;
        char address[40];
    } tasks[SERVERS_MAX];
    const char *names[SERVERS_MAX]; /* "/job:ps/replica:0/task:0" */
    int count;
};

/* Of `how` threads and optimisation count.  What was started is there when it fails. */
bool servers_start(struct servers *servers, int count, const struct session_options *how,
                   struct error *err) CHECKED;
void servers_stop(struct servers *servers);
