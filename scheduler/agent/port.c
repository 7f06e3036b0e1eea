/* port.c - the ports of the node that programs get, and the users that tasks run as. */

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scheduler/agent/internal.h"

/* Below those that the kernel gives to connections that go out. */
#define PORTS_FIRST 20000
#define PORTS_COUNT 10000

static bool port_is_free(const struct agent *agent, int port)
{
    for (int i = 0; i < agent->core.tasks_count; i++) {
        if (attempt_has_port(agent->core.tasks[i].attempt, port))
            return false;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

int port_take(struct agent *agent)
{
    if (!agent->port) /* several agents on one machine begin at different ones */
        agent->port = PORTS_FIRST + (int)(agent->core.random % PORTS_COUNT);
    for (int i = 0; i < PORTS_COUNT; i++) {
        agent->port++;
        if (agent->port >= PORTS_FIRST + PORTS_COUNT)
            agent->port = PORTS_FIRST;
        if (port_is_free(agent, agent->port))
            return agent->port;
    }
    return 0;
}

static bool user_is_free(const struct agent *agent, uid_t user)
{
    for (int i = 0; i < agent->core.tasks_count; i++) {
        if (attempt_user(agent->core.tasks[i].attempt) == user)
            return false;
    }
    return true;
}

uid_t port_user(const struct agent *agent, int64_t job)
{
    if (!agent->users.count)
        return 0;
    for (int i = 0; i < agent->core.tasks_count; i++) {
        const struct attempt *other = agent->core.tasks[i].attempt;
        if (attempt_task(other)->job_id == job && attempt_user(other))
            return attempt_user(other);
    }
    uid_t user = users_first(&agent->users, job);
    for (int i = 0; i < agent->users.count; i++, user = users_next(&agent->users, user)) {
        if (user_is_free(agent, user))
            return user;
    }
    return ATTEMPT_NO_USER;
}
