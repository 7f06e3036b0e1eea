/*
 * wire.h - the messages of TensorFlow's WorkerService as plain structs, for both ends.
 *
 * What is read lives in the arena that it is given; texts that are written are borrowed.
 */
#pragma once

#include "proto/rpc.h"
#include "runtime/device.h"
#include "runtime/tensor.h"
#include "runtime/worker/fabric.h"
#include "runtime/worker/near.h"

struct arena;
struct str;
struct waits;

/* CreateWorkerSession, DeleteWorkerSession, RegisterGraph, DeregisterGraph. */
struct wire_session {
    const char *session; /* "": the one that is there without being made */
    bool isolate;
    const char *graph; /* a handle */
    const void *graph_def;
    size_t graph_def_size;
    int64_t collectives; /* the key of a graph that has any; 0: it has none */
};

struct wire_run {
    const char *session;
    const char *graph;
    int64_t step_id;
    const char **send_keys;
    struct tensor *sends; /* owned: wire_release_run() */
    int sends_count;
    const char **receive_keys;
    int receives_count;
    bool errors_in_body;
    bool partial, last; /* one call of several, the last of them */
    bool may_end;       /* see struct worker_run */
    bool trace;         /* the answer has step statistics, */
    bool with_waits;    /* ... struct waits */
    bool with_graph;    /* ... the part's GraphDef */
    int64_t request_id; /* 0: none; else no other of the task's has it */
};

/* The answer to it. */
struct wire_ran {
    const char *const *keys; /* of what is received */
    struct tensor *received;
    int received_count;
    struct str *step_stats; /* a serialized StepStats; NULL: none (read: not looked at) */
    struct waits *waits;
    struct str *graph_def;
    bool *ended; /* (optional) */
};

/* RecvTensor. */
struct wire_receive {
    int64_t step_id;
    const char *key;
    int64_t request_id; /* 0: none; else no other of the task's has it */
    bool near;          /* the elements may be read from the sender's memory */
    bool fabric;        /* likewise, over the fabric */
};

struct wire_received {
    struct tensor value; /* owned; none when dead */
    bool dead;
    int64_t content_bytes;   /* of elements that lie apart, which `value` lacks; 0: none does */
    int64_t sent_us;         /* when it was sent, by the sender's clock; 0: it does not say */
    struct near_place place; /* of these in the sender's memory; none: they follow */
    struct fabric_keys keys; /* to read them over the fabric */
};

/* Who maps elements that are lent, where that can be; NULL: they are to be read. */
struct wire_borrower {
    struct buffer *(*borrow)(void *arg, const struct near_place *place, size_t size);
    void *arg;
};

struct wire_met {
    int64_t pid;
    uint64_t proof;     /* where the nonce is */
    const char *socket; /* "": it has none */
    const char *secret;
};

struct wire_meet {
    const char *host;
    const unsigned char *nonce; /* NEAR_NONCE_BYTES */
};

enum {
    WIRE_SMALL_BYTES = 64 << 10, /* what is smaller is copied */
    WIRE_NEAR_BYTES = 128 << 10, /* what is smaller is not worth being read from memory */
    WIRE_CHUNK_BYTES = 4 << 20,  /* a message that is nothing but elements, at most */
};

/* --- requests --- */

void wire_write_create_session(const struct wire_session *in, struct str *out);
void wire_write_delete_session(const struct wire_session *in, struct str *out);
void wire_write_register_graph(const struct wire_session *in, struct str *out);
void wire_write_deregister_graph(const struct wire_session *in, struct str *out);
bool wire_read_create_session(const void *bytes, size_t size, struct arena *arena,
                              struct wire_session *out, struct error *err) CHECKED;
bool wire_read_delete_session(const void *bytes, size_t size, struct arena *arena,
                              struct wire_session *out, struct error *err) CHECKED;
bool wire_read_register_graph(const void *bytes, size_t size, struct arena *arena,
                              struct wire_session *out, struct error *err) CHECKED;
bool wire_read_deregister_graph(const void *bytes, size_t size, struct arena *arena,
                                struct wire_session *out, struct error *err) CHECKED;

void wire_write_run(const struct wire_run *in, struct str *out);
bool wire_read_run(const void *bytes, size_t size, struct arena *arena, struct wire_run *out,
                   struct error *err) CHECKED;
void wire_release_run(struct wire_run *run);

void wire_write_cleanup_graph(int64_t step_id, struct str *out);
bool wire_read_cleanup_graph(const void *bytes, size_t size, int64_t *step_id,
                             struct error *err) CHECKED;
void wire_write_cleanup_all(const char *const *containers, int count, struct str *out);
bool wire_read_cleanup_all(const void *bytes, size_t size, struct arena *arena,
                           const char *const **containers, int *count,
                           struct error *err) CHECKED;

void wire_write_receive(const struct wire_receive *in, struct str *out);
bool wire_read_receive(const void *bytes, size_t size, struct arena *arena,
                       struct wire_receive *out, struct error *err) CHECKED;

void wire_write_finished(int64_t request_id, struct str *out);
bool wire_read_finished(const void *bytes, size_t size, int64_t *request_id,
                        struct error *err) CHECKED;

void wire_write_meet(const struct wire_meet *in, struct str *out);
bool wire_read_meet(const void *bytes, size_t size, struct arena *arena, struct wire_meet *out,
                    struct error *err) CHECKED;

/* --- answers --- */

void wire_write_met(const struct wire_met *in, struct str *out);
bool wire_read_met(const void *bytes, size_t size, struct arena *arena, struct wire_met *out,
                   struct error *err) CHECKED;

void wire_write_status(const struct device *devices, int count, struct str *out);
/* Fails with EXHAUSTED when there are more than `devices_max`.  `*exchanges`: the task is one
 * of ours, and serves RecvTensor in our form, too. */
bool wire_read_status(const void *bytes, size_t size, struct device *devices, int devices_max,
                      int *count, bool *exchanges, struct error *err) CHECKED;

void wire_write_handle(const char *handle, struct str *out);
bool wire_read_handle(const void *bytes, size_t size, char *handle, size_t handle_size,
                      struct error *err) CHECKED;

/* `status` NULL: it went well. */
void wire_write_ran(const struct wire_ran *in, const struct error *status, struct str *out);
/*
 * Fills `out->received` and the rest.  Fails with the status that the answer holds, and with
 * INTERNAL when a key is missing.
 */
bool wire_read_ran(const void *bytes, size_t size, const struct wire_ran *out,
                   struct error *err) CHECKED;

void wire_write_received(const struct tensor *value, bool dead, struct str *out);
/*
 * What comes before the elements of a tensor of a plain type: in the same message (TensorFlow's
 * form; nothing comes after them), or, when it `follows`, in messages of their own, or, where
 * there is a `place` (else NULL), nowhere.
 */
void wire_write_received_head(const struct tensor *value, bool follows,
                              const struct near_place *place, const struct fabric_keys *keys,
                              struct str *out);

/* Bytes of elements that are lent; 0: none are, or it cannot be read. */
size_t wire_read_lent(const void *bytes, size_t size);

/* `borrower`: NULL when no elements may be mapped. */
bool wire_read_received(const void *bytes, size_t size, const struct wire_borrower *borrower,
                        struct wire_received *out, struct error *err) CHECKED;
