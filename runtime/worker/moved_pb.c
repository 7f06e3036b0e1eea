/* moved_pb.c - the message of a task that was placed anew. */

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"
#include "proto/message.h"
#include "runtime/worker/moved.h"
#include "tensorflow/worker.pb-c.h"

#define ADDRESS_BYTES_MAX 300

void moved_write(const struct moved *moved, struct str *out)
{
    Tensorflow__MovedRequest request = TENSORFLOW__MOVED_REQUEST__INIT;
    request.task = (char *)moved->task;
    request.epoch = moved->epoch;
    request.address = (char *)moved->address;
    message_pack(&request.base, out);
}

/* Of a host and a port, as agents tell them. */
static bool check_address(const char *address, struct error *err)
{
    const char *colon = strrchr(address, ':');
    size_t size = strlen(address);
    return (colon && colon > address && colon[1] && size < ADDRESS_BYTES_MAX &&
            colon[1 + strspn(colon + 1, "0123456789")] == '\0' &&
            strspn(address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                            "0123456789.-") == (size_t)(colon - address)) ||
           fail(err, INVALID, "'%.60s' is no address", address);
}

bool moved_read(const void *bytes, size_t size, struct arena *arena, struct moved *out,
                struct error *err)
{
    const Tensorflow__MovedRequest *request =
        message_unpack(&tensorflow__moved_request__descriptor, bytes, size, arena, err);
    if (!request || !check_address(request->address, err))
        return false;
    if (request->epoch <= 0)
        return fail(err, INVALID, "%lld is no epoch", (long long)request->epoch);
    *out = (struct moved){request->task, request->epoch, request->address};
    return true;
}
