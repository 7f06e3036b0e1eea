/*
 * report.h - the topics of what tasks report: metrics, logs, placement, timeline (topic.h).
 */
#pragma once

#include "server/topic.h"

/* As topic_read() and topic_snapshot(), for topics of FEED_REPORTS. */
bool report_read(struct db *db, struct feed *feed, const struct topic *topic, int64_t after_seq,
                 const char *separator, struct str *events, struct topic_batch *batch,
                 struct error *err) CHECKED;
bool report_snapshot(struct db *db, const struct topic *topic, struct str *events,
                     struct topic_batch *batch, struct error *err) CHECKED;

/* Appends a value as JSON has it: NaN and the infinities, which JSON lacks, as texts. */
void report_number(struct str *out, double value);

/*
 * Appends {task, stream, text} for every line of a log whose end lies in [first, last),
 * separated by commas, and says how many.  Lines longer than LIMIT_LOG_LINE_BYTES lose their
 * beginning.
 */
struct db_conn;
struct db_log;
bool report_lines(struct db_conn *conn, const struct db_log *log, int64_t first, int64_t last,
                  struct arena *arena, struct str *out, int *lines_count,
                  struct error *err) CHECKED;
