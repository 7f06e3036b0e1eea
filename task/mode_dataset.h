/* mode_dataset.h - trainyard-task dataset: what a folder of data holds. */
#pragma once

/* Prints columns, parts and vocabularies; with --json as `trainyard dataset` reads them. */
int mode_dataset(int argc, char **argv);
