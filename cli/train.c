/* train.c - trainyard train, predict, evaluate: modes of the program beside this one, which has
 * the math. */

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "cli/cli.h"

int train_main(int argc, char **argv)
{
    (void)argc;
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
    char *args[64] = {path};
    int count = 1;
    for (int i = 0; argv[i] && count < ARRAY_LEN(args) - 1; i++)
        args[count++] = argv[i];
    execv(path, args);
    error_errno(&err, NOT_FOUND, "cannot start %s", path);
    return cli_fail(&err);
}
