/* main.c - the program `trainyard`: a table of verbs. */

#include <curl/curl.h>
#include <signal.h>

#include "base/nearest.h"
#include "cli/cli.h"

#define CLI_VERSION "0.1.0"

struct verb {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *usage;
    const char *summary;
};

static int help_main(int argc, char **argv);
static int version_main(int argc, char **argv);

static const struct verb verbs[] = {
    {"demo", demo_main, "[--dir DIR] [--port N]",
     "start a server, train a network on drawn digits, show it"},
    {"serve", serve_main, "--dir DIR [--port N]", "run the server"},
    {"agent", agent_main, "--server ADDRESS --token TOKEN", "lend this machine to a server"},
    {"login", login_main, "URL | --dir DIR",
     "keep a token for a server, or print a login link"},
    {"token", token_main, "create --dir DIR", "make a token for scripts or agents"},
    {"submit", submit_main, "FILE|EXAMPLE [--watch]", "submit a job"},
    {"jobs", jobs_main, "[--state S]", "list jobs"},
    {"show", show_main, "JOB", "show one job"},
    {"watch", watch_main, "JOB", "follow a job until it ends"},
    {"logs", logs_main, "JOB [-f]", "print what a job wrote"},
    {"explain", explain_main, "JOB", "say why a job waits, or how it ended"},
    {"cancel", cancel_main, "JOB...", "stop jobs after a checkpoint"},
    {"kill", kill_main, "JOB...", "end jobs at once"},
    {"nodes", nodes_main, "", "list nodes and what is in use"},
    {"dataset", dataset_main, "add|make|list ...", "put datasets where jobs find them"},
    {"train", train_main, "SPEC [--data FOLDER]", "train here and now, without a server"},
    {"graph", train_main, "show FILE", "show a GraphDef before and after the optimiser"},
    {"trace", train_main, "EVENTS", "traced steps for chrome://tracing and Perfetto"},
    {"version", version_main, "", "print the version"},
    {"help", help_main, "", "this list"},
};

static int version_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("trainyard " CLI_VERSION);
    return CLI_OK;
}

static int help_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("trainyard - training as a service\n");
    for (int i = 0; i < ARRAY_LEN(verbs); i++) {
        char left[60];
        snprintf(left, sizeof(left), "%s %s", verbs[i].name, verbs[i].usage);
        printf("  trainyard %-38s %s\n", left, verbs[i].summary);
    }
    puts("\n`trainyard VERB --help` tells the options of a verb.\n"
         "Which server: --dir DIR, else TRAINYARD_URL and TRAINYARD_TOKEN, else TRAINYARD_DIR, "
         "else `trainyard login`.\n"
         "Exit codes: 0 done; 1 refused or failed; 2 wrong arguments or spec; 3 no server "
         "answers; 4 "
         "the job was cancelled.");
    return CLI_OK;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return help_main(argc, argv) + CLI_USAGE;
    const char *name = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ? "help"
                       : strcmp(argv[1], "--version") == 0                          ? "version"
                                                                                    : argv[1];
    for (int i = 0; i < ARRAY_LEN(verbs); i++) {
        if (strcmp(verbs[i].name, name) != 0)
            continue;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int status = verbs[i].main(argc - 1, argv + 1);
        curl_global_cleanup();
        return status;
    }
    const char *names[ARRAY_LEN(verbs) + 1] = {0};
    for (int i = 0; i < ARRAY_LEN(verbs); i++)
        names[i] = verbs[i].name;
    const char *nearest = nearest_name(name, names);
    fprintf(stderr, "trainyard: there is no verb '%.60s'%s%s%s (`trainyard help` lists them)\n",
            name, nearest ? "; did you mean '" : "", nearest ? nearest : "",
            nearest ? "'?" : "");
    return CLI_USAGE;
}
