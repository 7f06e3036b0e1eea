/* mode_train.h - trainyard-task train: one job spec trained to its end, here and now. */
#pragma once

/*
 * Runs with the arguments after "train".  The result is the exit code of ARCHITECTURE.md
 * section 4: 0 finished, 2 the user's error, 3 stopped on request with a checkpoint, 1 a fault
 * of ours.
 */
int mode_train(int argc, char **argv);
