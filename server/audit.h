/*
 * audit.h - writes down who changed what.
 */
#pragma once

#include "base/base.h"

struct db;
struct error;
struct request;

/*
 * Runs the handler of the request's route.  Where it changes something, an entry is written in
 * the transaction of the change, or by itself before the reply is given; so is one where
 * somebody has signed in.
 */
bool audit_handle(struct request *req, struct error *err) CHECKED;

/*
 * Writes down that a request was refused, where that is worth knowing: one who is signed in was
 * denied something, or somebody who named himself (req->claimed) could not sign in.  At most a
 * few a second of each.  audit_handle() calls it for handlers.
 */
void audit_refused(struct request *req, const struct error *why);

/* Logs the newest entry's hash, so that it is kept where the database is not. */
void audit_log_newest(struct db *db);
