/*
 * sessions.h - recorded calls between TensorFlow's clients and servers, made again to ours.
 *
 * What is random in a session (its handle, those of partial runs and callables) is mapped as it
 * is answered; folders of recorded requests are turned into one of this run.
 */
#pragma once

#include "call.pb-c.h"

#include "base/error.h"
#include "base/str.h"

struct arena;

typedef Trainyard__Sessions__Call Call;

/* --- a file --- */

enum { CALL_CANCELLED = 1 }; /* Call.status of a stream that its caller cancelled */

struct session_calls {
    Call **calls; /* in the order in which they began */
    int count;
};

bool session_calls_read(struct session_calls *calls, const char *path,
                        struct error *err) CHECKED;
void session_calls_release(struct session_calls *calls);
/* "RunStep" */
const char *session_calls_method(const Call *call);
/* Whether it had ended, when it was recorded, before the other began. */
bool session_calls_before(const Call *call, const Call *later);

/* --- what stands for what --- */

enum { SESSION_FOLDER_BYTES = 15 }; /* "/tmp/tf-session" */

struct session_map {
    char folder[SESSION_FOLDER_BYTES + 1]; /* in place of it */
    struct session_names {                 /* of the same length in both */
        char recorded[17], ours[17];
    } * sessions;
    int sessions_count, sessions_capacity;
    struct session_numbers { /* of partial runs and callables, within a session */
        char session[17];    /* recorded */
        bool callable;
        int64_t recorded, ours;
    } * numbers;
    int numbers_count, numbers_capacity;
};

/* The handle of the request, as it was recorded, "" for none. */
void session_map_handle(const Call *call, char handle[17]);
/* Makes the folders of this run that the request names. */
void session_map_folders(const struct session_map *map, const struct str *request);
/* The bytes with the names of this run, appended. */
void session_map_text(const struct session_map *map, const void *bytes, size_t size,
                      struct str *out);
/* The request as our server is to get it. */
bool session_map_request(const struct session_map *map, const Call *call, struct str *out,
                         struct error *err) CHECKED;
/* Learns what the answer names. */
bool session_map_learn(struct session_map *map, const Call *call, const struct str *response,
                       struct error *err) CHECKED;

/* --- whether it is the same --- */

/*
 * `status` NULL: it was answered.  Without `values` tensors are only there: other calls went on
 * at the same time.  Fails with DATA_LOSS and the first difference.
 */
bool session_compare(const struct session_map *map, const Call *call,
                     const struct str *response, const struct error *status, bool values,
                     struct error *err) CHECKED;

/* --- making them again --- */

struct session_totals {
    int passed, failed;
    int left_out; /* need files that only the clients of then had */
};

/* What the calls are made to, and how they are held to what was recorded. */
struct session_player {
    void *self;
    struct rpc_client *(*client)(void *self, const Call *call);
    bool (*request)(void *self, const Call *call, struct str *out, struct error *err);
    bool (*compare)(void *self, const Call *call, const struct str *response,
                    const struct error *status, bool concurrent, struct error *err);
};

/* Makes all calls; prints those whose answers differ.  DEADLINE when one has none. */
bool session_play(const struct session_player *player, const struct session_calls *calls,
                  struct session_totals *totals, struct error *err) CHECKED;

/* Those of NAME.client.tfrecord, to masters of ours. */
bool session_clients(const struct session_calls *calls, struct session_totals *totals,
                     struct error *err) CHECKED;

/*
 * Those of NAME.workers.tfrecord that one task got, to a worker of ours; what it asks of other
 * tasks is answered as they did.
 */
bool session_worker(const struct session_calls *calls, const char *job, int task,
                    struct session_totals *totals, struct error *err) CHECKED;
