/* db.c - trainyard db check|backup|restore: the databases of a server's folder. */

#include "cli/cli.h"
#include "cli/options.h"
#include "db/backup.h"

static void finding(void *self, const char *file, const char *text)
{
    (void)self;
    printf("%s: %s\n", file, text);
}

static int check(const char *folder, struct error *err)
{
    int count = db_check(folder, finding, NULL, err);
    if (count < 0)
        return cli_fail(err);
    if (count > 0) {
        printf("%d finding%s: stop the server and go back to a backup: trainyard db restore"
               " --dir %s FROM\n",
               count, count == 1 ? "" : "s", folder);
        return CLI_FAILED;
    }
    printf("%s: nothing is wrong with control.db and metrics.db\n", folder);
    return CLI_OK;
}

static int backup(const char *folder, const char *to, struct error *err)
{
    if (!db_backup(folder, to, err))
        return cli_fail(err);
    printf("%s has control.db and metrics.db.  Copy %s/datasets, files and jobs beside it, and"
           " %s/secret.key to another place.\n",
           to, folder, folder);
    return CLI_OK;
}

static int restore(const char *folder, const char *from, struct error *err)
{
    struct db_restored restored;
    if (!db_restore(from, folder, &restored, err))
        return cli_fail(err);
    printf("%s: %lld jobs, %lld of them not ended; what was there is in %s\n", folder,
           (long long)restored.jobs, (long long)restored.alive, restored.aside);
    if (restored.set_aside)
        printf(
            "%lld folder%s of jobs that the backup does not know %s there too; what still runs"
            " of them is ended when its agent calls\n",
            (long long)restored.set_aside, restored.set_aside == 1 ? "" : "s",
            restored.set_aside == 1 ? "is" : "are");
    return CLI_OK;
}

int db_main(int argc, char **argv)
{
    static const char usage[] = "db check|backup TO|restore FROM --dir DIR";
    const char *folder = NULL;
    const struct option_row rows[] = {
        {"dir", OPTION_TEXT, &folder, "folder of a server on this machine"},
        {0},
    };
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 2, &words, &err) ||
        !options_need(folder, "dir", "the folder of a server on this machine", &err))
        return cli_usage(usage, rows, &err);
    const char *verb = words.word[0];
    if (strcmp(verb, "check") == 0 && words.count == 1)
        return check(folder, &err);
    if (strcmp(verb, "backup") == 0 && words.count == 2)
        return backup(folder, words.word[1], &err);
    if (strcmp(verb, "restore") == 0 && words.count == 2)
        return restore(folder, words.word[1], &err);
    fail(&err, INVALID, "there is no 'db %.40s' with %d more word%s", verb, words.count - 1,
         words.count == 2 ? "" : "s");
    return cli_usage(usage, rows, &err);
}
