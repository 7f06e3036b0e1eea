/*
 * man.c - trainyard man: the manual page trainyard(1), made from what the verbs say for --help.
 */

#include "base/str.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/verbs.h"

/* Writes text so that troff takes none of it for an order. */
static void put(const char *text)
{
    bool begins = true; /* a line */
    for (; *text; text++) {
        if (begins && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        begins = *text == '\n';
    }
}

static bool put_verb(const struct verb *verb, struct error *err)
{
    static const char prefix[] = "usage: ";
    struct str help = {0};
    bool ok = strcmp(verb->name, "help") == 0 || strcmp(verb->name, "version") == 0 ||
              help_ask(verb->name, &help, err);
    if (ok) {
        str_add_char(&help, '\n');
        const char *text = str_text(&help);
        printf(".SS %s\n", verb->name);
        put(verb->summary);
        puts("\n.PP\n.nf");
        put(strncmp(text, prefix, strlen(prefix)) == 0 ? text + strlen(prefix) : text);
        puts(".fi");
    }
    str_release(&help);
    return ok;
}

int man_main(int argc, char **argv)
{
    static const char usage[] = "man     (prints trainyard(1): trainyard man | man -l -)";
    const struct option_row rows[] = {{0}};
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 0, 0, &words, &err))
        return cli_usage(usage, rows, &err);
    puts(".TH TRAINYARD 1 \"\" \"Trainyard\" \"User Commands\"\n"
         ".SH NAME\ntrainyard \\- training as a service\n"
         ".SH SYNOPSIS\n.B trainyard\n.I VERB\n.RI [ OPTIONS ]\n"
         ".SH WHICH SERVER\n.nf");
    put(help_servers);
    puts("\n.fi\n.SH VERBS");
    for (int i = 0; i < verbs_all_count; i++)
        if (!put_verb(&verbs_all[i], &err))
            return cli_fail(&err);
    puts(".SH EXIT STATUS");
    put(help_exits);
    puts("");
    return CLI_OK;
}
