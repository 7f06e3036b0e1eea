/*
 * master_wire.h - the messages of TensorFlow's MasterService as plain structs.
 *
 * What is read lives in the arena that it is given.
 */
#pragma once

#include "runtime/master/master.h"
#include "runtime/session.h"

struct arena;

/* CreateSession, ExtendSession, CloseSession, ListDevices, ReleaseCallable. */
struct master_request {
    const char *session;
    const void *graph_def;
    size_t graph_def_size;
    int64_t version; /* that the client knows */
    int64_t handle;  /* of a callable */
    struct master_config config;
};

/* RunStep, PartialRunSetup, MakeCallable, RunCallable. */
struct master_step {
    const char *session;
    struct session_run run;
    struct tensor *feeds; /* what run.feed_values points to; owned: master_wire_release() */
    int feeds_count;
    const char *partial; /* handle, "" */
    int64_t callable;
    int64_t request;
    bool errors_in_body;
    bool wants_parts; /* RunOptions.output_partition_graphs */
};

bool master_wire_create(const void *bytes, size_t size, struct arena *arena,
                        struct master_request *out, struct error *err) CHECKED;
bool master_wire_extend(const void *bytes, size_t size, struct arena *arena,
                        struct master_request *out, struct error *err) CHECKED;
bool master_wire_close(const void *bytes, size_t size, struct arena *arena,
                       struct master_request *out, struct error *err) CHECKED;
bool master_wire_list(const void *bytes, size_t size, struct arena *arena,
                      struct master_request *out, struct error *err) CHECKED;
bool master_wire_release_callable(const void *bytes, size_t size, struct arena *arena,
                                  struct master_request *out, struct error *err) CHECKED;
bool master_wire_reset(const void *bytes, size_t size, struct arena *arena,
                       const char *const **containers, int *count, struct error *err) CHECKED;

bool master_wire_run(const void *bytes, size_t size, struct arena *arena,
                     struct master_step *out, struct error *err) CHECKED;
bool master_wire_partial(const void *bytes, size_t size, struct arena *arena,
                         struct master_step *out, struct error *err) CHECKED;
bool master_wire_make_callable(const void *bytes, size_t size, struct arena *arena,
                               struct master_step *out, struct error *err) CHECKED;
bool master_wire_run_callable(const void *bytes, size_t size, struct arena *arena,
                              struct master_step *out, struct error *err) CHECKED;
void master_wire_release(struct master_step *step);

/* --- answers --- */

void master_wire_created(const char *handle, struct str *out);
void master_wire_extended(int64_t version, struct str *out);
void master_wire_devices(const struct device *devices, int count, int local_count,
                         struct str *out);
void master_wire_partial_made(int64_t handle, struct str *out);
void master_wire_callable_made(int64_t handle, struct str *out);

/* `names` NULL: of a callable.  `status` NULL: it went well. */
void master_wire_ran(const char *const *names, const struct tensor *fetched, int count,
                     const struct str *metadata, const struct error *status, struct str *out);
void master_wire_callable_ran(const struct tensor *fetched, int count,
                              const struct str *metadata, struct str *out);
