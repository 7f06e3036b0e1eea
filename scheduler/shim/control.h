/*
 * control.h - the shim's socket: lines in, lines out.
 *
 *   "TERM\n"    asks the task to end            -> "OK\n"
 *   "KILL\n"    ends all its processes          -> "OK\n"
 *   "STATUS\n"  -> {"state": "running"|"ending", "pid": N, "cookie": "..."}
 */
#pragma once

#include "base/base.h"

#define CONTROL_CONNECTIONS 8

enum control_command { CONTROL_NONE, CONTROL_TERM, CONTROL_KILL, CONTROL_STATUS };

struct control {
    int listener; /* -1 when it could not be made */
    struct control_connection {
        int fd; /* -1: free */
        int size;
        char line[32];
    } connections[CONTROL_CONNECTIONS];
};

/* Listens on "control.sock" in the current folder. */
bool control_open(struct control *control);

/* Takes a new connection; the oldest goes when there are too many. */
void control_accept(struct control *control);

/* Reads from connection `index`; returns the command once its line is whole. */
enum control_command control_read(struct control *control, int index);

/* Answers connection `index` with one line. */
void control_reply(struct control *control, int index, const char *line);

void control_close(struct control *control);
