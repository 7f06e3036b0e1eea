/* help.c - trainyard help: the table of verbs. */

#include "cli/cli.h"
#include "cli/verbs.h"

int help_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("trainyard - training as a service\n");
    for (int i = 0; i < verbs_all_count; i++) {
        char left[60];
        snprintf(left, sizeof(left), "%s %s", verbs_all[i].name, verbs_all[i].usage);
        printf("  trainyard %-38s %s\n", left, verbs_all[i].summary);
    }
    puts("\n`trainyard VERB --help` tells the options of a verb.\n"
         "Which server: --dir DIR, else TRAINYARD_URL and TRAINYARD_TOKEN, else TRAINYARD_DIR, "
         "else `trainyard login`.\n"
         "Exit codes: 0 done; 1 refused or failed; 2 wrong arguments or spec; 3 no server "
         "answers; 4 "
         "the job was cancelled.");
    return CLI_OK;
}
