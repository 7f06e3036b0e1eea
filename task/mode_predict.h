/* mode_predict.h - trainyard-task predict: what a trained model says of examples. */
#pragma once

/* Runs with the arguments after "predict".  0: done; 1: a fault; 2: the user's error. */
int mode_predict(int argc, char **argv);
