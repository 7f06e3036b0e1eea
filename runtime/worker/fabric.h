/*
 * fabric.h - tasks of several machines that read each other's memory over UCX: by RDMA where
 * the machines have such a network, else by shared memory or TCP.
 *
 * libucp is loaded when it is asked for; nothing else needs it.  What near.h is within a
 * machine this is between them: who has a tensor lends it, with a key, and who wants it reads
 * it from there to where it belongs.  UCX asks nobody who he is, so this is for networks whose
 * machines are all trusted; addresses and keys go by way of the tasks' own connections.
 *
 * One for the process.  Callable from any thread.
 *
 * DESIGN: a thread (fabric_main) drives what UCX does in software; readers drive their own
 * reads as well while they wait.
 */
#pragma once

#include "base/base.h"

struct error;
struct fabric_memory;
struct fabric_peer;

#define FABRIC_VARIABLE "TRAINYARD_FABRIC"

enum {
    FABRIC_ADDRESS_BYTES_MAX = 4096, /* where a process is reached */
    FABRIC_KEY_BYTES_MAX = 1024,     /* of what is lent */
    FABRIC_READ_MS = 30000,          /* one read, at most */
};

/* Opens it, once.  Fails with NOT_FOUND when there is no libucp, UNAVAILABLE when it finds no
 * way to other machines. */
bool fabric_open(struct error *err) CHECKED;
bool fabric_is_open(void);

/* The same when FABRIC_VARIABLE says "ucx"; nothing when it is not set, INVALID when it says
 * anything else. */
bool fabric_open_wanted(struct error *err) CHECKED;

/* When nothing is lent, and nobody reads. */
void fabric_close(void);

/* Where this process is reached, at most FABRIC_ADDRESS_BYTES_MAX; while it is open. */
const void *fabric_address(size_t *size);

struct fabric_key {
    size_t size; /* 0: none */
    unsigned char bytes[FABRIC_KEY_BYTES_MAX];
};

/* Of a tensor that is lent, and of the mark that says so (near.h). */
struct fabric_keys {
    struct fabric_key elements, mark;
};

/* Lets others read these bytes, who are given the key; NULL when they cannot. */
struct fabric_memory *fabric_lend(const void *data, size_t size, struct fabric_key *key);
void fabric_take_back(struct fabric_memory *memory); /* NULL is fine */

/* A way to the process with that address; held by who connects and who shares it, until each
 * has disconnected. */
struct fabric_peer *fabric_connect(const void *address, size_t size, struct error *err) CHECKED;
struct fabric_peer *fabric_share(struct fabric_peer *peer);
void fabric_disconnect(struct fabric_peer *peer); /* NULL is fine */

/*
 * Reads what `peer` has lent at `address`.  Fails with UNAVAILABLE when it is gone, or takes
 * longer than FABRIC_READ_MS; then the connection is of no more use.
 */
bool fabric_read(struct fabric_peer *peer, uint64_t address, const struct fabric_key *key,
                 void *to, size_t size, struct error *err) CHECKED;
