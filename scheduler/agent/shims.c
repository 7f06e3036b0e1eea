/* shims.c - shim.json, shim.lock and control.sock of an attempt's folder. */

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "scheduler/agent/files.h"
#include "scheduler/agent/inventory.h"
#include "scheduler/agent/launch.h"
#include "scheduler/agent/shims.h"

#define CONTROL_WAIT_MS 1000 /* for the shim to take and answer a command */
#define FIND_WAIT_MS 10000   /* for it to say which task it runs, ... */
#define FIND_LOOK_MS 5       /* ... between looks */

/* The descriptor is opened first, so that it cannot change under us. */
int shims_open(const json_t *shim)
{
    char boot_id[64];
    int64_t pid = files_int(shim, "pid");
    if (strcmp(files_text(shim, "boot_id"), inventory_boot_id(boot_id, sizeof(boot_id))) != 0 ||
        pid <= 0)
        return -1;
    int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (pidfd < 0)
        return -1;
    if (launch_is_process((pid_t)pid, files_int(shim, "start_time"),
                          files_text(shim, "cookie")))
        return pidfd;
    close(pidfd);
    return -1;
}

/* Takes the lock of who runs a task in the folder.  False: somebody has it; -1: nobody can. */
static bool claim_take(const char *folder, int *claim)
{
    char *path = alloc_printf("%s/shim.lock", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool taken = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0;
    free(path);
    if (taken)
        *claim = fd;
    else
        close(fd);
    return taken;
}

/* Whether there is no more to be said: it runs its task, or does not live. */
static bool is_settled(const json_t *shim)
{
    int pidfd = files_int(shim, "task_pid") ? -1 : shims_open(shim);
    if (pidfd < 0)
        return true;
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};
    bool settled = poll(&gone, 1, FIND_LOOK_MS) > 0;
    close(pidfd);
    return settled;
}

json_t *shims_find(const char *folder, int *claim, struct error *err)
{
    json_t *shim = NULL;
    bool claimed = false, settled = false;
    *claim = -1;
    for (int looks = 0; looks <= FIND_WAIT_MS / FIND_LOOK_MS && !settled; looks++) {
        json_decref(shim);
        shim = files_read_json(folder, "shim.json", err);
        settled = shim ? is_settled(shim) : err->code != NOT_FOUND || claimed;
        if (!shim && !settled && !(claimed = claim_take(folder, claim)))
            poll(NULL, 0, FIND_LOOK_MS);
    }
    if (shim && *claim >= 0) { /* it came before the lock, and has gone */
        close(*claim);
        *claim = -1;
    }
    return shim;
}

bool shims_command(const char *folder, const char *line)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {.tv_sec = CONTROL_WAIT_MS / 1000};
    char answer[16];
    /* By way of a descriptor: sun_path is short, and folders are not. */
    int above = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control.sock",
             above);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    bool ok = above >= 0 && fd >= 0 &&
              connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
              send(fd, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line) &&
              recv(fd, answer, sizeof(answer), 0) > 0;
    if (above >= 0)
        close(above);
    if (fd >= 0)
        close(fd);
    return ok;
}
