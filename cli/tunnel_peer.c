/* tunnel_peer.c - whose socket is at the other end of a connection over loopback. */

#include <sys/socket.h>
#include <unistd.h>

#include "base/connection.h"
#include "base/error.h"
#include "cli/tunnel.h"

#define OWNER_NONE (-1)

struct search {
    struct endpoint from, to;
    int64_t owner;
};

/* A socket that was closed while its bytes are under way belongs to nobody any more. */
static bool find_owner(void *arg, const struct connection *row)
{
    struct search *search = arg;
    if (!connection_same(&row->local, &search->from) ||
        !connection_same(&row->remote, &search->to))
        return true;
    search->owner = row->user;
    return false;
}

bool tunnel_peer_is_own(int fd, struct error *err)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_size = sizeof(here), there_size = sizeof(there);
    struct search search = {.owner = OWNER_NONE};
    if (getsockname(fd, (struct sockaddr *)&here, &here_size) ||
        getpeername(fd, (struct sockaddr *)&there, &there_size))
        return error_errno(err, UNAVAILABLE, "the connection is gone");
    if (connection_endpoint((struct sockaddr *)&there, &search.from) &&
        connection_endpoint((struct sockaddr *)&here, &search.to))
        connection_each(find_owner, &search);
    if (search.owner == OWNER_NONE)
        return fail(err, DENIED,
                    "a connection whose user the system does not tell was refused");
    return search.owner == (int64_t)getuid() ||
           fail(err, DENIED,
                "a connection of user %lld was refused: the tunnel is for user %lld alone "
                "(--any-user lets in all)",
                (long long)search.owner, (long long)getuid());
}
