/* mode_trace.h - trainyard-task trace: the traced steps of an event file, for a trace viewer.
 */
#pragma once

/* Runs with the arguments after "trace".  0: written; 1: a fault; 2: the user's error. */
int mode_trace(int argc, char **argv);
