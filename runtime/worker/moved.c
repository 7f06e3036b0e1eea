/* moved.c - see moved.h. */

#include "runtime/worker/moved.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/worker/link.h"
#include "runtime/worker/remote.h"
#include "runtime/worker/service.h"

bool moved_take(struct worker_link *const *links, int count, const struct moved *moved,
                struct error *err)
{
    for (int i = 0; i < count; i++) {
        if (!strcmp(links[i]->task, moved->task))
            return link_rpc_move(links[i], moved->address, moved->epoch, err);
    }
    return fail(err, NOT_FOUND, "there is no task %.100s here", moved->task);
}

struct telling {
    void (*done)(void *arg, bool ok);
    void *arg;
};

static void told(void *arg, const struct str *response, const struct error *err)
{
    struct telling *telling = arg;
    (void)response;
    telling->done(telling->arg, !err);
    free(telling);
}

void moved_tell(struct worker_link *link, const struct moved *moved,
                void (*done)(void *arg, bool ok), void *arg)
{
    struct telling *telling = alloc_bytes(sizeof(*telling));
    struct str request = {0};
    *telling = (struct telling){done, arg};
    moved_write(moved, &request);
    rpc_client_start(((struct remote *)link)->client, SERVICE_MOVED, &request, told, telling);
    str_release(&request);
}
