/*
 * tfevent.h - the records of event files: what tasks write, what the server and TensorBoard
 * read.
 *
 * Adding functions append one framed record (record.h) to `out`.  Two readers of TensorBoard
 * and ours must be satisfied: steps of a tag strictly increase, and every attempt begins with
 * tfevent_add_version() and then a START with the step it resumes from.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;
struct str;

enum tfevent_status { TFEVENT_START = 1, TFEVENT_STOP = 2, TFEVENT_CHECKPOINT = 3 };

struct tfevent_scalar {
    const char *tag; /* UTF-8, not empty */
    float value;
};

/* --- writing; `wall_time` is in seconds since 1970 and no NaN --- */

/* The first record of a file; `writer` names the program.  Its time is cut to whole seconds. */
void tfevent_add_version(struct str *out, double wall_time, const char *writer);

/* Start, checkpoint or end of an attempt; `checkpoint_path` is "" but for a checkpoint. */
void tfevent_add_session(struct str *out, double wall_time, int64_t step,
                         enum tfevent_status status, const char *checkpoint_path);

/* A serialized GraphDef, with the devices that its nodes really got. */
void tfevent_add_graph(struct str *out, double wall_time, const void *graph, size_t size);

/* Values of one step, as TensorFlow 1's scalars (simple_value), which every reader knows. */
void tfevent_add_scalars(struct str *out, double wall_time, int64_t step,
                         const struct tfevent_scalar *scalars, int scalars_count);

/* A string scalar shown by `plugin`. */
void tfevent_add_text(struct str *out, double wall_time, int64_t step, const char *tag,
                      const char *plugin, const void *bytes, size_t size);

/* A serialized RunMetadata of a traced step; `tag` is unique within the run. */
void tfevent_add_run_metadata(struct str *out, double wall_time, int64_t step, const char *tag,
                              const void *metadata, size_t size);

/* --- reading --- */

enum tfevent_kind {
    TFEVENT_EMPTY,
    TFEVENT_VERSION,
    TFEVENT_GRAPH,
    TFEVENT_SUMMARY,
    TFEVENT_LOG,
    TFEVENT_SESSION,
    TFEVENT_RUN_METADATA,
    TFEVENT_META_GRAPH,
};

struct tfevent_value {
    const char *tag;
    const char *plugin; /* as the file says, or what its old form implies; "" if nothing does */
    bool is_scalar;     /* one number, in either form */
    double scalar;
    const void *bytes; /* of a string scalar, else NULL */
    size_t size;
};

struct tfevent {
    enum tfevent_kind kind;
    double wall_time;
    int64_t step;
    enum tfevent_status status; /* SESSION; 0 when unspecified */
    const char
        *text; /* VERSION: it, SESSION: checkpoint path, RUN_METADATA: tag, LOG: line; "" */
    const void *bytes; /* GRAPH, META_GRAPH, RUN_METADATA: the serialized message */
    size_t size;
    const struct tfevent_value *values; /* SUMMARY */
    int values_count;
};

/*
 * Takes the data of one record apart into `*event`, which lives in `arena`.  Fails with INVALID
 * if it is no Event (or its time is NaN), with EXHAUSTED when it is over a limit of message.h.
 */
bool tfevent_parse(const void *bytes, size_t size, struct arena *arena, struct tfevent *event,
                   struct error *err) CHECKED;
