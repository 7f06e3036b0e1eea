/* help.c - trainyard help: the table of verbs. */

#include "cli/help.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/cli.h"
#include "cli/verbs.h"

const char help_servers[] = "--dir DIR, else TRAINYARD_URL and TRAINYARD_TOKEN, else "
                            "TRAINYARD_DIR, else `trainyard login`.";
const char help_exits[] = "0 done; 1 refused or failed; 2 wrong arguments or spec; 3 no server "
                          "answers; 4 the job was cancelled.";

bool help_ask(const char *verb, struct str *text, struct error *err)
{
    int pipes[2], status = -1;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return error_errno(err, INTERNAL, "cannot ask for the options of '%s'", verb);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[1], STDOUT_FILENO);
        execl("/proc/self/exe", "trainyard", verb, "--help", (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    for (;;) {
        ssize_t count = read(pipes[0], str_extend(text, 4096), 4096);
        text->size -= 4096 - (size_t)(count > 0 ? count : 0);
        if (count <= 0)
            break;
    }
    close(pipes[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return fail(err, INTERNAL, "`trainyard %s --help` did not work", verb);
    return true;
}

int help_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("trainyard - training as a service\n");
    for (int i = 0; i < verbs_all_count; i++) {
        char left[60];
        snprintf(left, sizeof(left), "%s %s", verbs_all[i].name, verbs_all[i].usage);
        printf("  trainyard %-38s %s\n", left, verbs_all[i].summary);
    }
    printf("\n`trainyard VERB --help` tells the options of a verb.\n"
           "Which server: %s\nExit codes: %s\n",
           help_servers, help_exits);
    return CLI_OK;
}
