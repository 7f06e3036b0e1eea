/*
 * audit.h - writes down who changed what.
 */
#pragma once

#include "base/base.h"

struct error;
struct request;

/*
 * Runs the handler of the request's route.  Where it changes something, an entry is written in
 * the transaction of the change, or by itself before the reply is given.
 */
bool audit_handle(struct request *req, struct error *err) CHECKED;
