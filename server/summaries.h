/*
 * summaries.h - what models come to, remembered: most specs come again under another name, and
 * building a graph only to see that it can be built takes longer than all else of a submit.
 */
#pragma once

#include "runtime/model/model.h"

struct arena;
struct summaries;

#define SUMMARIES_KEY_BYTES 32

struct summaries *summaries_new(void);
void summaries_free(struct summaries *summaries); /* NULL is fine */

/* Copies what was kept under the key into `arena`; false when nothing was, or no longer. */
bool summaries_find(struct summaries *summaries, const uint8_t key[SUMMARIES_KEY_BYTES],
                    struct arena *arena, struct model_summary *out);

/* Keeps it, in place of the oldest; one of very many layers is not kept. */
void summaries_keep(struct summaries *summaries, const uint8_t key[SUMMARIES_KEY_BYTES],
                    const struct model_summary *summary);
