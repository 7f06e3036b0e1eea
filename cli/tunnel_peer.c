/* tunnel_peer.c - whose socket is at the other end of a connection over loopback. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/tunnel.h"

#define ESTABLISHED 1
#define OWNER_NONE (-1)

/* An address as the kernel's tables print it: words of the machine's order, in hexadecimal. */
static void print_ipv4(char out[80], const struct sockaddr_in *a)
{
    snprintf(out, 80, "%08X:%04X", a->sin_addr.s_addr, ntohs(a->sin_port));
}

/* The same of a socket for both families, which most of gRPC's are. */
static void print_mapped(char out[80], const struct sockaddr_in *a)
{
    snprintf(out, 80, "0000000000000000%08X%08X:%04X", htonl(0xffff), a->sin_addr.s_addr,
             ntohs(a->sin_port));
}

/* The user of the socket `from` that is connected to `to`; OWNER_NONE: there is none.  A socket
 * that was closed while its bytes are under way belongs to nobody any more. */
static int64_t find_owner(const char *table, const char *from, const char *to)
{
    char line[512], local[80], remote[80];
    unsigned state, user;
    unsigned long inode;
    int64_t owner = OWNER_NONE;
    FILE *file = fopen(table, "re");
    while (file && owner == OWNER_NONE && fgets(line, sizeof(line), file)) {
        if (sscanf(line, " %*d: %79s %79s %x %*s %*s %*s %u %*d %lu", local, remote, &state,
                   &user, &inode) == 5 &&
            state == ESTABLISHED && inode && !strcmp(local, from) && !strcmp(remote, to))
            owner = user;
    }
    if (file)
        fclose(file);
    return owner;
}

bool tunnel_peer_is_own(int fd, struct error *err)
{
    struct sockaddr_in here, there;
    socklen_t here_size = sizeof(here), there_size = sizeof(there);
    char from[80], to[80];
    if (getsockname(fd, (struct sockaddr *)&here, &here_size) ||
        getpeername(fd, (struct sockaddr *)&there, &there_size))
        return error_errno(err, UNAVAILABLE, "the connection is gone");
    print_ipv4(from, &there);
    print_ipv4(to, &here);
    int64_t owner = find_owner("/proc/net/tcp", from, to);
    if (owner == OWNER_NONE) {
        print_mapped(from, &there);
        print_mapped(to, &here);
        owner = find_owner("/proc/net/tcp6", from, to);
    }
    if (owner == OWNER_NONE)
        return fail(err, DENIED,
                    "a connection whose user the system does not tell was refused");
    return owner == (int64_t)getuid() ||
           fail(err, DENIED,
                "a connection of user %lld was refused: the tunnel is for user %lld alone "
                "(--any-user lets in all)",
                (long long)owner, (long long)getuid());
}
