/* train.c - trainyard train, graph, trace: modes of the program beside this one, which has
 * the math. */

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"

int train_main(int argc, char **argv)
{
    char path[PATH_MAX];
    struct error err;
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (size < 0) {
        error_errno(&err, INTERNAL, "cannot find this program's own folder");
        return cli_fail(&err);
    }
    path[size] = 0;
    char *slash = strrchr(path, '/');
    size_t room = sizeof(path) - (size_t)(slash + 1 - path);
    if (!slash || snprintf(slash + 1, room, "trainyard-task") >= (int)room)
        return CLI_FAILED;
    /* argv[0] is the verb, which is the task's mode: trainyard-task train SPEC ... */
    char **args = alloc_array((size_t)argc + 2, sizeof(*args));
    args[0] = path;
    memcpy(args + 1, argv, (size_t)argc * sizeof(*args));
    execv(path, args);
    error_errno(&err, NOT_FOUND, "cannot start %s", path);
    free(args);
    return cli_fail(&err);
}
