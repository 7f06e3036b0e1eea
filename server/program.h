/*
 * program.h - what the server tells agents of jobs that run a program: the program itself and
 * its files.
 */
#pragma once

#include "proto/agent_pb.h"

struct arena;
struct db;
struct db_conn;
struct error;
struct spec;
struct str;

/* The command line as one text, as a person would type it: at most PROGRAM_TEXT_BYTES. */
#define PROGRAM_TEXT_BYTES 400
const char *program_text(const struct spec *spec, struct arena *arena);

/*
 * What the stored spec says, and the values of its secrets as they are now; it and all in it
 * live in `arena`.  A secret that cannot be read is `program->problem`.
 */
bool program_read(const struct db *db, struct db_conn *conn, const char *spec, int tasks,
                  struct arena *arena, struct agent_program *program,
                  struct error *err) CHECKED;

/* INVALID with the pointer of the first file that nobody has uploaded to the server's `folder`.
 */
bool program_check_files(const struct spec *spec, const char *folder,
                         struct error *err) CHECKED;

/* INVALID with the pointer of the first secret that nobody has set. */
bool program_check_secrets(const struct spec *spec, struct db *db, struct error *err) CHECKED;
