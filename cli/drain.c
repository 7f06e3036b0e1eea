/* drain.c - trainyard drain: nodes that take nothing new. */

#include "cli/change.h"
#include "cli/cli.h"
#include "cli/options.h"

int drain_main(int argc, char **argv)
{
    static const char usage[] =
        "drain NODE... [--undo]     (what runs there runs on; nothing new starts)";
    const char *folder = NULL;
    bool undo = false;
    const struct option_row rows[] = {
        {"undo", OPTION_FLAG, &undo, "let them take jobs again"},
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {0},
    };
    struct options_words words;
    struct error err;
    int status = CLI_OK;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, OPTIONS_WORDS_MAX, &words, &err))
        return cli_usage(usage, rows, &err);
    for (int i = 0; i < words.count; i++) {
        int one;
        json_t *answer =
            change_verb(folder, "nodes", words.word[i], undo ? "undrain" : "drain", NULL, &one);
        if (answer)
            printf("%s %s\n", words.word[i],
                   json_is_true(json_object_get(answer, "draining")) ? "takes nothing new"
                                                                     : "takes jobs again");
        else
            status = one;
        json_decref(answer);
    }
    return status;
}
