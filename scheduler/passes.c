/* passes.c - how long the scheduler's passes take. */

#include "scheduler/passes.h"

void passes_note(struct passes *passes, const struct pass *pass)
{
    passes->count++;
    passes->took_us += pass->took_us;
    int at = passes->longest_count;
    while (at > 0 && passes->longest[at - 1].took_us < pass->took_us)
        at--;
    if (at == PASSES_KEPT)
        return;
    if (passes->longest_count < PASSES_KEPT)
        passes->longest_count++;
    memmove(&passes->longest[at + 1], &passes->longest[at],
            (size_t)(passes->longest_count - 1 - at) * sizeof(*pass));
    passes->longest[at] = *pass;
}
