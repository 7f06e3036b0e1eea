/* mode_classes.h - trainyard-task classes: what specs can name. */
#pragma once

/* Prints the page docs/classes.md. */
int mode_classes(int argc, char **argv);
