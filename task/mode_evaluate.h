/* mode_evaluate.h - trainyard-task evaluate: the metrics of a trained model. */
#pragma once

/* Runs with the arguments after "evaluate".  0: done; 1: a fault; 2: the user's error. */
int mode_evaluate(int argc, char **argv);
