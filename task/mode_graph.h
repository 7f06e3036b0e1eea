/* mode_graph.h - trainyard-task graph show: a GraphDef before and after the passes. */
#pragma once

/* Runs with the arguments after "graph".  0: shown; 1: a fault; 2: the user's error. */
int mode_graph(int argc, char **argv);
