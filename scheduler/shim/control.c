/* control.c - a unix socket with three commands. */

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "scheduler/shim/control.h"

bool control_open(struct control *control)
{
    for (int i = 0; i < CONTROL_CONNECTIONS; i++)
        control->connections[i].fd = -1;
    /* A relative name: sun_path is short, and folders are not. */
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "control.sock"};
    control->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (control->listener < 0)
        return false;
    unlink(address.sun_path);
    return bind(control->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
           listen(control->listener, CONTROL_CONNECTIONS) == 0;
}

static void connection_drop(struct control_connection *connection)
{
    close(connection->fd);
    connection->fd = -1;
}

void control_accept(struct control *control)
{
    static int oldest;
    int fd = accept4(control->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct control_connection *connection = NULL;
    for (int i = 0; i < CONTROL_CONNECTIONS && !connection; i++) {
        if (control->connections[i].fd < 0)
            connection = &control->connections[i];
    }
    if (!connection) {
        connection = &control->connections[oldest++ % CONTROL_CONNECTIONS];
        connection_drop(connection);
    }
    *connection = (struct control_connection){.fd = fd};
}

static enum control_command command_of(const char *line)
{
    if (strcmp(line, "TERM") == 0)
        return CONTROL_TERM;
    if (strcmp(line, "KILL") == 0)
        return CONTROL_KILL;
    if (strcmp(line, "STATUS") == 0)
        return CONTROL_STATUS;
    return CONTROL_NONE;
}

enum control_command control_read(struct control *control, int index)
{
    struct control_connection *connection = &control->connections[index];
    for (;;) {
        char c;
        ssize_t n = read(connection->fd, &c, 1);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return CONTROL_NONE;
        if (n <= 0 || connection->size + 1 == (int)sizeof(connection->line)) {
            connection_drop(connection);
            return CONTROL_NONE;
        }
        if (c != '\n') {
            connection->line[connection->size++] = c;
            continue;
        }
        connection->line[connection->size] = '\0';
        connection->size = 0;
        enum control_command command = command_of(connection->line);
        if (command != CONTROL_NONE)
            return command;
        control_reply(control, index, "unknown command; TERM, KILL and STATUS are known\n");
    }
}

void control_reply(struct control *control, int index, const char *line)
{
    /* A line always fits into an empty socket buffer; who does not read is dropped. */
    struct control_connection *connection = &control->connections[index];
    if (connection->fd >= 0 &&
        send(connection->fd, line, strlen(line), MSG_NOSIGNAL) != (ssize_t)strlen(line))
        connection_drop(connection);
}

void control_close(struct control *control)
{
    for (int i = 0; i < CONTROL_CONNECTIONS; i++) {
        if (control->connections[i].fd >= 0)
            connection_drop(&control->connections[i]);
    }
    unlink("control.sock");
    if (control->listener >= 0)
        close(control->listener);
}
