/*
 * program.h - a job that is any program: its folders, its command line, its environment.
 *
 * In the folder of the attempt: work/, which it runs in unless the job names a folder of the
 * node; out/, its $TRAINYARD_OUT; out/artifacts/, what is to be kept of it; secrets/, one file
 * for each secret.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct agent_program;
struct error;
struct words;

#define PROGRAM_OUT "out"
#define PROGRAM_ARTIFACTS "out/artifacts"
#define PROGRAM_WORK "work"
#define PROGRAM_SECRETS "secrets"

/* The program's part of start.json, without its secrets; owned by the caller. */
json_t *program_json(const struct agent_program *program);

/* Makes the folders, and the files of the secrets, in `folder`. */
bool program_make(const char *folder, const struct agent_program *program,
                  struct error *err) CHECKED;

/* The folder to run in; a relative one is in the folder of the attempt. */
const char *program_folder(const json_t *start);

/* The program and its arguments; `start` is start.json. */
void program_command(struct words *words, const json_t *start);

/* TF_CONFIG: which task this is, and where all are. */
void program_add_cluster(struct words *words, const json_t *start);

/*
 * What programs look for: TF_CONFIG, RANK and its like, MASTER_ADDR, the GPUs that are theirs,
 * $TRAINYARD_OUT; where its secrets are, and those that it wants as variables; then the
 * variables that the job sets.  Fails when a secret cannot be read.
 */
bool program_environment(struct words *words, const char *folder, const json_t *start,
                         struct error *err) CHECKED;
