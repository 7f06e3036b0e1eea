/*
 * events.h - the event file of an attempt: what a task reports of itself.
 *
 * Records are gathered in memory and written out 50 ms after the last write at the latest, as
 * long as somebody adds or calls events_flush_due() each step; nobody waits for a disk.  The
 * agent ships the file as it grows, and TensorBoard can read it.
 *
 * Used by one thread.
 */
#pragma once

#include "base/base.h"
#include "proto/tfevent.h"

struct error;
struct events;

/*
 * Makes a new file FOLDER/events.out.tfevents.SECONDS.HOST.PID with its version record in it,
 * on disk when this returns.  Owned by the caller.
 */
struct events *events_open(const char *folder, struct error *err) CHECKED;

/* The file's path; borrowed. */
const char *events_path(const struct events *events);

/* What ARCHITECTURE.md section 5 lists, at `step` and now. */
void events_session(struct events *events, int64_t step, enum tfevent_status status,
                    const char *checkpoint_path);
void events_run(struct events *events, int64_t step, const char *json);
void events_graph(struct events *events, const void *graph_def, size_t size);
void events_placement(struct events *events, int64_t step, const char *json);
void events_times(struct events *events, int64_t step, const char *json);

/* What a person should know: an event of the job. */
void events_notice(struct events *events, int64_t step, const char *text);
void events_scalars(struct events *events, int64_t step, const struct tfevent_scalar *scalars,
                    int scalars_count);
void events_trace(struct events *events, int64_t step, const void *metadata, size_t size);

/* Writes out what is gathered, now, or if the last write is 50 ms ago.  Errors stick,
 * but for EXHAUSTED: what a full disk did not take is kept, and goes out with the next. */
bool events_flush(struct events *events, struct error *err) CHECKED;
bool events_flush_due(struct events *events, struct error *err) CHECKED;

/* Writes out, syncs, closes and frees.  NULL is fine. */
bool events_close(struct events *events, struct error *err) CHECKED;

/* Closes and frees without writing, after a failure.  NULL is fine. */
void events_discard(struct events *events);
