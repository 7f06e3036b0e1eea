/* mode_export.h - trainyard-task export: a trained model in a format that others read. */
#pragma once

/* Runs with the arguments after "export".  0: written; 1: a fault; 2: the user's error. */
int mode_export(int argc, char **argv);
