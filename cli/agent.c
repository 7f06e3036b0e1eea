/* agent.c - trainyard agent: this machine as a node of a server elsewhere. */

#include <signal.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/pem.h"
#include "scheduler/agent/agent.h"

/* Runs until a signal, or until the agent cannot go on. */
static int run(const struct agent_options *options)
{
    struct error err;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    struct agent *agent = agent_start(options, &err);
    if (!agent)
        return cli_fail(&err);
    printf("agent of %s runs in %s\n", options->server, options->folder);
    fflush(stdout);
    struct timespec second = {1, 0};
    bool failed = false;
    while (!(failed = agent_failed(agent, &err)) && sigtimedwait(&signals, NULL, &second) < 0)
        continue;
    agent_stop(agent);
    return failed ? cli_fail(&err) : CLI_OK;
}

int agent_main(int argc, char **argv)
{
    struct agent_options options = {.token = getenv("TRAINYARD_TOKEN")};
    struct pem_paths paths = {.option = ""};
    int64_t cpus = 0;
    int64_t gpus = 0;
    const struct option_row rows[] = {
        {"server", OPTION_TEXT, &options.server,
         "its address for agents, HOST:PORT (DIR/server.json has it)"},
        {"token", OPTION_TEXT, &options.token,
         "a join token, the first time: trainyard token create --join (or TRAINYARD_TOKEN)"},
        {"ca", OPTION_TEXT, &paths.ca,
         "PEM file that the server's certificate is checked against (what the token says)"},
        {"cert", OPTION_TEXT, &paths.certificate, "PEM file to show to a server that asks"},
        {"key", OPTION_TEXT, &paths.key, "PEM file with its key"},
        {"dir", OPTION_TEXT, &options.folder, "where the agent keeps its tasks"},
        {"name", OPTION_TEXT, &options.node_name, "of the node (the machine's name)"},
        {"cpus", OPTION_NUMBER, &cpus, "CPUs to lend (all)"},
        {"memory", OPTION_NUMBER, &options.memory_bytes, "bytes to lend (all)"},
        {"labels", OPTION_TEXT, &options.labels,
         "what jobs may ask of the node: NAME=VALUE,NAME=VALUE"},
        {"task-user", OPTION_TEXT, &options.task_user,
         "FIRST-LAST: unused user ids that tasks run as, one a job (as root)"},
        {"dataset-bytes", OPTION_NUMBER, &options.dataset_bytes,
         "of copies of datasets that it keeps, where it does not see the server's folder (what "
         "the disk holds)"},
        {"no-shared-folder", OPTION_FLAG, &options.no_shared_folder,
         "work on copies, also where the server's folder is seen"},
        {"fake-gpus", OPTION_NUMBER, &gpus, "GPUs that do not exist, to try scheduling"},
        {0},
    };
    static const char usage[] = "agent --server HOST:PORT --dir DIR [--token TOKEN] [options]";
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 0, &words, &err) ||
        !options_need(options.server, "server", "the server's address for agents", &err) ||
        !options_need(options.folder, "dir", "where the agent keeps its tasks", &err))
        return cli_usage(usage, rows, &err);
    if (paths.certificate && !paths.ca &&
        !fail(&err, INVALID, "--cert needs --ca, which the server is checked against"))
        return cli_usage(usage, rows, &err);
    struct pem pem;
    if (!pem_read(&paths, &pem, &err))
        return cli_fail(&err);
    options.tls = pem_tls(&pem);
    options.cpu_millis = cpus * 1000;
    options.fake_gpus = (int)gpus;
    int status = run(&options);
    pem_release(&pem);
    return status;
}
