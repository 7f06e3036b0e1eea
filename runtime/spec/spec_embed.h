/*
 * spec_embed.h - files of this machine that a spec names, put into it.
 *
 * {"model": {"graph": {"file": "model.meta"}}} becomes {"meta_graph": …}, compressed, wherever
 * a person gives the spec as a file: the server gets what came of it.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct error;

/*
 * Puts them into the spec; `path` is the spec's own, from whose folder they are named ("-" or
 * no folder: from here).  `*changed` (or NULL): whether there were any.  Fails with INVALID,
 * with NOT_FOUND, and with EXHAUSTED when one is larger than what a spec can hold.
 */
bool spec_embed(json_t *spec, const char *path, bool *changed, struct error *err) CHECKED;
