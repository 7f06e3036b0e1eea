/*
 * job_cursor.h - where a list of jobs in an order goes on: "BITS-NUMBER", the bits of the value
 * in 16 hexadecimal digits and the number of the last job, or, by name, "NUMBER:NAME".
 */
#pragma once

#include "db/metrics.h"

const char *job_cursor_text(struct arena *arena, const struct db_ranked *ranked);

/* INVALID when the text is none that job_cursor_text() makes of a value. */
bool job_cursor_read(const char *text, struct db_ranked *ranked, struct error *err) CHECKED;

/* The same of a text, which points into `text`. */
bool job_cursor_read_text(const char *text, struct db_ranked *ranked,
                          struct error *err) CHECKED;
