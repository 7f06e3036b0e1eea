/* watch.c - trainyard watch. */

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/options.h"
#include "cli/progress.h"

int watch_main(int argc, char **argv)
{
    const char *folder = NULL;
    bool json = false;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {"json", OPTION_FLAG, &json, "one event a line"},
        {0},
    };
    static const char usage[] = "watch JOB";
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    struct client *client = client_open(folder, &err);
    if (!client)
        return cli_fail(&err);
    struct progress_options options = {words.word[0], json,
                                       json ? NULL : "\nThe job runs on.\n"};
    int status = progress_show(client, &options);
    client_close(client);
    return status;
}
