/* version.c - trainyard version. */

#include "cli/cli.h"

#define CLI_VERSION "0.1.0"

int version_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("trainyard " CLI_VERSION);
    return CLI_OK;
}
