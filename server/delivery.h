/*
 * delivery.h - one try to tell a webhook something.
 *
 * It is a POST of {id, type: "job.state", time, webhook, job: {id, number, name, project, user,
 * state, from, attempt, reason, text}}, or of a test, without `job`.  The header
 *
 *     Trainyard-Signature: t=SECONDS,v1=HEX
 *
 * has the HMAC-SHA256 of "SECONDS.BODY" under the webhook's secret.  No proxy is used and no
 * redirect followed; the address is looked at when it is connected to, so that a name cannot
 * become another one in between.
 */
#pragma once

#include <curl/curl.h>

#include "base/base.h"
#include "db/deliveries.h"

struct db_conn;
struct db_webhook;
struct delivery;
struct error;

#define DELIVERY_TIMEOUT_S 10
#define DELIVERY_ANSWER_BYTES 65536 /* of the answer, which is dropped */

/*
 * Whether a webhook may have the URL: https with a host, without user and fragment, a numeric
 * address public (address.h).  INVALID if not.  `anywhere`: also http, and any address.
 */
bool delivery_check_url(const char *url, bool anywhere, struct error *err) CHECKED;

/* The value of the signature's header, in `out`. */
#define DELIVERY_SIGNATURE_BYTES 120
const char *delivery_sign(const char *secret, int64_t time_s, const char *body,
                          char out[DELIVERY_SIGNATURE_BYTES]);

/* What is sent, owned by the caller; NULL on failure. */
char *delivery_body(struct db_conn *conn, const struct db_delivery *row,
                    const struct db_webhook *webhook, struct error *err) CHECKED;

/* A try that has not begun; takes `body`.  `webhook` is not kept. */
struct delivery *delivery_new(const struct db_delivery *row, const struct db_webhook *webhook,
                              const char *secret, char *body, bool anywhere);
void delivery_free(struct delivery *delivery); /* NULL is fine */

/* What performs it; its private pointer is the delivery. */
CURL *delivery_curl(struct delivery *delivery);
const struct db_delivery *delivery_row(const struct delivery *delivery);

/* After it was performed: its status, 0 for none, and why it did not succeed, "" if it did. */
const char *delivery_result(struct delivery *delivery, CURLcode code, int *status);
