/*
 * log.h - one line per fact, on stderr: level=warn at=lease job=7 msg="...".
 *
 * Only the mains of threads and dispatchers log; all else returns its error.  Never a secret.
 */
#pragma once

#include "base/base.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Lines below this level are dropped; INFO at start. */
void log_set_level(enum log_level level);

/*
 * Writes one line.  `at` is the place ("scheduler"), `fields` the printf text of further
 * key=value pairs, or "" (values with blanks are quoted by the caller with log_quote()).
 */
void log_line(enum log_level level, const char *at, const char *fields, ...) PRINTF_LIKE(3, 4);

/* Writes `text` quoted and with control characters escaped into `out`, cut to fit; returns it.
 */
const char *log_quote(const char *text, char *out, size_t out_size);
