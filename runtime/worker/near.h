/*
 * near.h - tasks of one machine and one user, which read each other's memory.
 *
 * A tensor is then copied once, by the system, from where the sender has it to where the
 * receiver wants it: no socket, no encryption, no memory besides.  Nobody is believed to be
 * near.  Two tasks meet: the one that will read says which host, user and process space it is
 * of, with a nonce; the other, if of the same, keeps the nonce in its memory and says where.
 * The process that it names must have the other end of the connection over which it says so,
 * by the system's tables (base/connection.h): none is read that is not the task itself.  What
 * is read there is the proof, and it is read again with everything that is read later; so is
 * the number of the request, which stands there only as long as the tensor does.
 */
#pragma once

#include <sys/types.h>

#include "base/base.h"

struct error;

enum { NEAR_NONCE_BYTES = 16, NEAR_HOST_BYTES = 128 };

/* A process whose memory this one reads. */
struct near_process {
    pid_t pid;
    uint64_t proof; /* the address of the nonce there */
    unsigned char nonce[NEAR_NONCE_BYTES];
};

/* Where a tensor is that its task lends. */
struct near_place {
    uint64_t address; /* of the elements; 0: none is lent */
    uint64_t mark;    /* of the request's number, an int64_t, which stands there until the
                         elements may change */
    int file;         /* of the sender, that has the elements from its first byte on; 0: none */
    bool writable;    /* nobody there looks at them any more */
};

/* Set to "no" in a task's environment nobody is near to it. */
#define NEAR_VARIABLE "TRAINYARD_NEAR"

/* The boot of the system, the user and the process space; fails where they cannot be told. */
bool near_host(char out[NEAR_HOST_BYTES], struct error *err) CHECKED;

/* Reads the proof.  Fails with UNAVAILABLE when the process is gone, is another one, or the
 * system does not let it be read. */
bool near_prove(const struct near_process *process, struct error *err) CHECKED;

/* Whether the process is the one it was, and what that request asked for is lent until now.
 * Fails as above, and when it was taken back. */
bool near_is_lent(const struct near_process *process, const struct near_place *place,
                  int64_t request_id, struct error *err) CHECKED;

/* Reads `size` bytes of elements, then the proof and the mark.  Fails as above, and when what
 * was lent by that request was taken back before it had been read. */
bool near_read(const struct near_process *process, const struct near_place *place,
               int64_t request_id, void *to, size_t size, struct error *err) CHECKED;
