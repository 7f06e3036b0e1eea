/*
 * reply.h - what a handler answers: JSON, text, or a problem (RFC 9457).
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct error;
struct request;

/* Answers with `json` (takes it; NULL fails with INTERNAL).  Returns true. */
bool reply_json(struct request *req, int status, json_t *json, struct error *err) CHECKED;

/* Answers with bytes that stay where they are until the reply is sent (arena, static). */
bool reply_bytes(struct request *req, int status, const char *type, const void *bytes,
                 size_t size);

/* The same for bytes on the heap (takes them). */
bool reply_owned(struct request *req, int status, const char *type, char *bytes, size_t size);

/* The same for `size` bytes from `first` on of a file that is open (takes it). */
bool reply_file(struct request *req, int status, const char *type, int file, int64_t first,
                size_t size);

/*
 * Compresses what is long (REPLY_GZIP_BYTES) and text, for a client that takes gzip.  Answers
 * with secrets are short: what is compressed beside them tells nothing of them.
 */
#define REPLY_GZIP_BYTES 4096
void reply_compress(struct request *req);

/* Adds a header; both texts must outlive the request (static, or in its arena). */
void reply_header(struct request *req, const char *name, const char *value);

/*
 * Answers with application/problem+json made from `err`: type, title, status, detail, instance,
 * code, request_id, hint, and errors[] with the pointer when there is one.  `status` 0: by the
 * code. What was in the reply before is dropped.
 */
void reply_problem(struct request *req, int status, const struct error *err);

/* The HTTP status that stands for a code; 500 for one that is unknown. */
int reply_status(int code);

/* "400 Bad Request" without the number; "" for a status we never use. */
const char *reply_status_text(int status);

/* What a person can do about an error of that code, one sentence, "" when there is nothing. */
const char *reply_hint(int code);
