/*
 * near.h - tasks of one machine and one user, which read each other's memory.
 *
 * A tensor is then copied once, by the system, from where the sender has it to where the
 * receiver wants it: no socket, no encryption, no memory besides.  Nobody is believed to be
 * near.  Two tasks meet: the one that will read says which host, user and process space it is
 * of, with a nonce; the other, if of the same, keeps the nonce in its memory and says where.
 * What is read there is the proof, and it is read again with everything that is read later.
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

/* The boot of the system, the user and the process space; fails where they cannot be told. */
bool near_host(char out[NEAR_HOST_BYTES], struct error *err) CHECKED;

/* Reads `size` bytes, and the proof.  Fails with UNAVAILABLE when the process is gone, is
 * another one, or the system does not let it be read. */
bool near_read(const struct near_process *process, uint64_t address, void *to, size_t size,
               struct error *err) CHECKED;
