/* demo.c - trainyard demo: dataset, server, job and progress in one go. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "server/door.h"

#define DEMO_EXAMPLE "digits-cnn"
#define DEMO_PORT 7070

struct demo {
    const char *folder;
    int64_t port; /* -1: not given */
    pid_t server;
    char ready[600]; /* the line it printed */
};

/* Runs this program again with these arguments.  `output` NULL: ours; else the end of a pipe to
 * read from. */
static pid_t start_self(char *const *args, int *output)
{
    int pipes[2];
    if (output && pipe2(pipes, O_CLOEXEC) != 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        if (output) {
            setpgid(0, 0); /* Ctrl-C is for us; we end it */
            prctl(PR_SET_PDEATHSIG, SIGTERM);
            dup2(pipes[1], STDOUT_FILENO);
        }
        execv("/proc/self/exe", args);
        _exit(127);
    }
    if (output) {
        close(pipes[1]);
        *output = pipes[0];
    }
    return pid;
}

static bool run_self(char *const *args, struct error *err)
{
    int status = -1;
    pid_t pid = start_self(args, NULL);
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        return true;
    return fail(err, INTERNAL, "`trainyard %s %s` did not work", args[1], args[2]);
}

/* Draws the digits, once. */
static bool make_dataset(const struct demo *demo, struct error *err)
{
    char *known = alloc_printf("%s/datasets/digits/dataset.json", demo->folder);
    char *folder = alloc_printf("%s/digits", demo->folder);
    bool ok = true;
    if (access(known, R_OK) != 0) {
        char *const make[] = {"trainyard", "dataset", "make", "digits", folder, NULL};
        char *const add[] = {"trainyard", "dataset", "add",   "digits",
                             "--from",    folder,    "--dir", (char *)demo->folder,
                             NULL};
        ok = run_self(make, err) && run_self(add, err);
    }
    free(folder);
    free(known);
    return ok;
}

/* The usual port if it is free, else any. */
static int choose_port(const struct demo *demo)
{
    struct error ignored;
    if (demo->port >= 0)
        return (int)demo->port;
    int port = DEMO_PORT;
    int fd = door_tcp("127.0.0.1", &port, &ignored);
    if (fd < 0)
        return 0;
    close(fd);
    return port;
}

static bool start_server(struct demo *demo, struct error *err)
{
    char port[16];
    snprintf(port, sizeof(port), "%d", choose_port(demo));
    char *const args[] = {"trainyard", "serve", "--dir", (char *)demo->folder,
                          "--port",    port,    NULL};
    int output;
    demo->server = start_self(args, &output);
    if (demo->server < 0)
        return error_errno(err, INTERNAL, "cannot start the server");
    FILE *lines = fdopen(output, "r");
    bool ok = lines && fgets(demo->ready, sizeof(demo->ready), lines) &&
              strncmp(demo->ready, "ready: ", 7) == 0;
    if (lines)
        fclose(lines);
    if (!ok) {
        waitpid(demo->server, NULL, 0); /* it has said why */
        return fail(err, UNAVAILABLE, "the server did not start");
    }
    return true;
}

static void stop_server(const struct demo *demo)
{
    kill(demo->server, SIGTERM);
    waitpid(demo->server, NULL, 0);
}

static void wait_for_interrupt(void)
{
    sigset_t signals;
    int got;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    sigwait(&signals, &got);
}

static int train(const struct demo *demo, struct error *err)
{
    struct client *client = client_open(demo->folder, err);
    json_t *job = client ? client_json(client, "POST", "/api/v1/jobs",
                                       "{\"example\": \"" DEMO_EXAMPLE "\"}", NULL, err)
                         : NULL;
    if (!job) {
        client_close(client);
        return cli_fail(err);
    }
    long long number = json_integer_value(json_object_get(job, "number"));
    char *id = alloc_printf("%lld", number);
    char *after = alloc_printf("\nThe server ends; the job runs on by itself. Come back with:\n"
                               "  trainyard serve --dir %s\n  trainyard watch %lld --dir %s\n",
                               demo->folder, number, demo->folder);
    printf("Job %lld trains a small convolutional network on drawn digits.\n"
           "Watch it in a browser (this link signs you in, once):\n\n  %s\n\n",
           number,
           strstr(demo->ready, "sign in once with ")
               ? strstr(demo->ready, "sign in once with ") + 18
               : demo->ready);
    fflush(stdout);
    struct progress_options options = {id, false, after};
    int status = progress_show(client, &options);
    free(after);
    free(id);
    json_decref(job);
    client_close(client);
    return status;
}

int demo_main(int argc, char **argv)
{
    struct demo demo = {.folder = "trainyard-demo", .port = -1};
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &demo.folder, "where everything is kept (trainyard-demo)"},
        {"port", OPTION_NUMBER, &demo.port, "of the page (7070, or any free one)"},
        {0},
    };
    static const char usage[] = "demo [--dir DIR] [--port N]";
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 0, &words, &err))
        return cli_usage(usage, rows, &err);
    if (mkdir(demo.folder, 0700) != 0 &&
        (errno != EEXIST || access(demo.folder, W_OK | X_OK) != 0)) {
        error_errno(&err, DENIED, "cannot make or use the folder %s (--dir DIR takes another)",
                    demo.folder);
        return cli_fail(&err);
    }
    if (!make_dataset(&demo, &err) || !start_server(&demo, &err))
        return cli_fail(&err);
    int status = train(&demo, &err);
    if (isatty(STDOUT_FILENO) && status != CLI_UNREACHABLE) {
        printf("\nThe page stays until you press Ctrl-C. Later: trainyard serve --dir %s\n",
               demo.folder);
        wait_for_interrupt();
    }
    stop_server(&demo);
    return status;
}
