/* verbs.c - the table of verbs, in the order in which help lists them. */

#include "cli/verbs.h"
#include "cli/cli.h"

const struct verb verbs_all[] = {
    {"demo", demo_main, "[--dir DIR] [--port N]",
     "start a server, train a network on drawn digits, show it"},
    {"serve", serve_main, "--dir DIR [--port N]", "run the server"},
    {"agent", agent_main, "--server ADDRESS --token TOKEN", "lend this machine to a server"},
    {"login", login_main, "URL | --dir DIR",
     "keep a token for a server, or print a login link"},
    {"token", token_main, "create --dir DIR", "make a token for scripts or agents"},
    {"submit", submit_main, "FILE|EXAMPLE [--watch]", "submit a job"},
    {"run", run_main, "[OPTIONS] -- PROGRAM...", "run any program as a job, here and now"},
    {"jobs", jobs_main, "[--state S]", "list jobs"},
    {"show", show_main, "JOB", "show one job"},
    {"watch", watch_main, "JOB", "follow a job until it ends"},
    {"logs", logs_main, "JOB [-f]", "print what a job wrote"},
    {"explain", explain_main, "JOB", "say why a job waits, or how it ended"},
    {"cancel", cancel_main, "JOB...", "stop jobs after a checkpoint"},
    {"kill", kill_main, "JOB...", "end jobs at once"},
    {"priority", priority_main, "JOB N", "give a queued job another priority"},
    {"queue", queue_main, "[NAME ...]", "list queues, make or change one"},
    {"project", project_main, "[NAME ...]", "list projects, set weight and quota of one"},
    {"secret", secret_main, "set|list|remove [NAME]",
     "keep what jobs are told and nobody else sees"},
    {"nodes", nodes_main, "", "list nodes and what is in use"},
    {"dataset", dataset_main, "add|make|show|list ...", "put datasets where jobs find them"},
    {"train", train_main, "SPEC [--data FOLDER]", "train here and now, without a server"},
    {"evaluate", train_main, "MODEL [--data FOLDER]",
     "the metrics of a trained model over its test part"},
    {"predict", train_main, "MODEL [INPUT...]", "what a trained model says of examples"},
    {"export", train_main, "MODEL OUT [--format F]",
     "write a trained model for other programs"},
    {"checkpoint", train_main, "show|export|diff ...",
     "look into checkpoints and files of tensors"},
    {"graph", train_main, "show FILE", "show a GraphDef before and after the optimiser"},
    {"trace", train_main, "EVENTS", "traced steps for chrome://tracing and Perfetto"},
    {"completion", completion_main, "bash|zsh|fish", "print what makes a shell complete these"},
    {"version", version_main, "", "print the version"},
    {"help", help_main, "", "this list"},
};
const int verbs_all_count = ARRAY_LEN(verbs_all);
