/* cli.c - what every verb says in the same way. */

#include "cli/cli.h"
#include "cli/options.h"

bool cli_wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0)
            return true;
    return false;
}

int cli_usage(const char *usage, const struct option_row *rows, const struct error *err)
{
    if (err) {
        fprintf(stderr, "trainyard: %s\nusage: trainyard %s\n", err->text, usage);
        return CLI_USAGE;
    }
    printf("usage: trainyard %s\n\n", usage);
    options_print(rows);
    return CLI_OK;
}

int cli_fail(const struct error *err)
{
    if (*err->pointer)
        fprintf(stderr, "trainyard: %s: %s\n", err->pointer, err->text);
    else
        fprintf(stderr, "trainyard: %s\n", err->text);
    return err->code == UNAVAILABLE                ? CLI_UNREACHABLE
           : err->code == INVALID || *err->pointer ? CLI_USAGE
                                                   : CLI_FAILED;
}
