/* main.c - the program `trainyard`: finds the verb and calls it. */

#include <curl/curl.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/failpoint.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/verbs.h"

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (!failpoint_arm())
        return CLI_USAGE;
    if (argc < 2)
        return help_main(argc, argv) + CLI_USAGE;
    const char *name = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ? "help"
                       : strcmp(argv[1], "--version") == 0                          ? "version"
                                                                                    : argv[1];
    for (int i = 0; i < verbs_all_count; i++) {
        if (strcmp(verbs_all[i].name, name) != 0)
            continue;
        curl_global_init(CURL_GLOBAL_DEFAULT);
        int status = verbs_all[i].main(argc - 1, argv + 1);
        curl_global_cleanup();
        return status;
    }
    const char **names = alloc_array((size_t)verbs_all_count + 1, sizeof(*names));
    for (int i = 0; i < verbs_all_count; i++)
        names[i] = verbs_all[i].name;
    const char *nearest = nearest_name(name, names);
    fprintf(stderr, "trainyard: there is no verb '%.60s'%s%s%s (`trainyard help` lists them)\n",
            name, nearest ? "; did you mean '" : "", nearest ? nearest : "",
            nearest ? "'?" : "");
    free(names);
    return CLI_USAGE;
}
