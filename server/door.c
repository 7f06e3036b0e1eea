/* door.c - binding and listening. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "server/door.h"

#define DOOR_BACKLOG 1024

int door_tcp(const char *host, int *port, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fail(err, INVALID, "'%s' is no IPv4 address to listen on", host);
        return -1;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        error_errno(err, UNAVAILABLE, "cannot make a socket");
        return -1;
    }
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    socklen_t size = sizeof(address);
    if (bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, DOOR_BACKLOG) != 0) {
        if (errno == EADDRINUSE)
            fail(err, UNAVAILABLE,
                 "port %d of %s is taken by another program; choose another with --port N "
                 "(--port 0 "
                 "takes a free one)",
                 *port, host);
        else
            error_errno(err, UNAVAILABLE, "cannot listen on %s port %d", host, *port);
        close(fd);
        return -1;
    }
    getsockname(fd, (struct sockaddr *)&address, &size);
    *port = ntohs(address.sin_port);
    return fd;
}

int door_unix(const char *path, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) {
        fail(
            err, INVALID,
            "%s: the path is too long for a socket (at most %zu bytes): choose a shorter --dir",
            path, sizeof(address.sun_path) - 1);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        error_errno(err, UNAVAILABLE, "cannot make a socket");
        return -1;
    }
    unlink(path); /* of a server that was killed: we hold the folder's lock */
    mode_t before = umask(0177);
    int failed = bind(fd, (struct sockaddr *)&address, sizeof(address));
    umask(before);
    if (failed || listen(fd, DOOR_BACKLOG) != 0) {
        error_errno(err, UNAVAILABLE, "cannot listen on %s", path);
        close(fd);
        return -1;
    }
    return fd;
}
