/*
 * cli.h - the verbs of the program `trainyard`, and what they have in common.
 *
 * A verb is one file and one row in main.c: int NAME_main(int argc, char **argv), where argv[0]
 * is the verb.
 */
#pragma once

#include "base/base.h"
#include "base/error.h"

/* What every verb returns; `trainyard help` tells people. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,      /* the request was refused, or the job that was waited for failed */
    CLI_USAGE = 2,       /* wrong arguments or spec */
    CLI_UNREACHABLE = 3, /* no server answers */
    CLI_CANCELLED = 4,   /* the job that was waited for was cancelled */
};

struct option_row;

/*
 * Handles `--help` (prints `usage` and the options, exits) and wrong arguments: a verb begins
 * with if (!options_parse(...)) return cli_usage(usage, rows, &err);
 */
int cli_usage(const char *usage, const struct option_row *rows, const struct error *err);
bool cli_wants_help(int argc, char **argv);

/* Prints what went wrong (and the field at fault) on stderr; returns the exit code that fits.
 */
int cli_fail(const struct error *err);

int agent_main(int argc, char **argv);
int audit_main(int argc, char **argv);
int cancel_main(int argc, char **argv);
int completion_main(int argc, char **argv);
int db_main(int argc, char **argv);
int dataset_main(int argc, char **argv);
int demo_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int help_main(int argc, char **argv);
int jobs_main(int argc, char **argv);
int kill_main(int argc, char **argv);
int pause_main(int argc, char **argv);
int resume_main(int argc, char **argv);
int clone_main(int argc, char **argv);
int edit_main(int argc, char **argv);
int archive_main(int argc, char **argv);
int remove_main(int argc, char **argv);
int restart_main(int argc, char **argv);
int login_main(int argc, char **argv);
int logs_main(int argc, char **argv);
int man_main(int argc, char **argv);
int member_main(int argc, char **argv);
int model_main(int argc, char **argv);
int nodes_main(int argc, char **argv);
int drain_main(int argc, char **argv);
int top_main(int argc, char **argv);
int plan_main(int argc, char **argv);
int priority_main(int argc, char **argv);
int project_main(int argc, char **argv);
int queue_main(int argc, char **argv);
int secret_main(int argc, char **argv);
int run_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int show_main(int argc, char **argv);
int submit_main(int argc, char **argv);
int token_main(int argc, char **argv);
int tunnel_main(int argc, char **argv);
int train_main(int argc, char **argv);
int user_main(int argc, char **argv);
int version_main(int argc, char **argv);
int watch_main(int argc, char **argv);
int webhook_main(int argc, char **argv);
