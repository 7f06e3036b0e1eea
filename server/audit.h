/*
 * audit.h - writes down who changed what.
 */
#pragma once

#include "base/base.h"

struct request;

/* To be called with the reply ready: adds an entry when `req` changed something. */
void audit_request(const struct request *req);
