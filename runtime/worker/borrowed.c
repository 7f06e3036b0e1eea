/* borrowed.c - mapping what is lent, and giving it back. */

#include "runtime/worker/borrowed.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/buffer_shared.h"
#include "runtime/shared_memory.h"
#include "runtime/worker/lender.h"
#include "runtime/worker/near.h"

struct borrowed {
    struct buffer buffer; /* first */
    struct lender *lender;
    struct shared_memory memory;
    int64_t request_id;
};

static void destroy(struct buffer *buffer)
{
    struct borrowed *borrowed = (struct borrowed *)buffer;
    shared_memory_free(&borrowed->memory);
    lender_tell(borrowed->lender, borrowed->request_id);
    lender_unref(borrowed->lender);
    free(borrowed);
}

struct buffer *borrowed_buffer(struct lender *lender, const struct near_process *process,
                               const struct near_place *place, int64_t request_id, size_t size)
{
    struct shared_memory memory;
    struct error err;
    buffer_drop_spare(size);
    if (!shared_memory_open(&memory, process->pid, place->file, size, place->writable))
        return NULL;
    /* What has that number there is the elements' file if they were lent until now. */
    if (!near_is_lent(process, place, request_id, &err)) {
        shared_memory_free(&memory);
        return NULL;
    }
    struct borrowed *borrowed = alloc_bytes(sizeof(*borrowed));
    *borrowed = (struct borrowed){.buffer = {.references = 1,
                                             .data = memory.data,
                                             .size = size,
                                             .destroy = destroy,
                                             .capacity = memory.size,
                                             .file = -1,
                                             .borrowers = !place->writable},
                                  .lender = lender,
                                  .memory = memory,
                                  .request_id = request_id};
    lender_ref(lender);
    return &borrowed->buffer;
}
