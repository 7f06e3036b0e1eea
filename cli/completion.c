/*
 * completion.c - trainyard completion: scripts by which a shell completes verbs, options, jobs.
 *
 * DESIGN: verbs and their words are those of verbs.c; the options of each are what the verb
 * itself prints for --help, asked of this very program.  So nothing is listed twice.
 */

#include "cli/completion.h"
#include "base/alloc.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/help.h"
#include "cli/options.h"
#include "runtime/spec/spec.h"

/* --- reading what there is --- */

/* "  --dir TEXT     where everything is kept": the name, what it takes, and the rest. */
static void read_option(const char *line, struct completion_option *option)
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ,.";
    size_t name = strcspn(line, " ");
    snprintf(option->name, sizeof(option->name), "%.*s", (int)name, line);
    const char *rest = line + name + (line[name] == ' ');
    size_t taken = strspn(rest, capitals);
    option->value = VALUE_NONE;
    if (taken && rest[taken] == ' ') {
        option->value = taken == 1 && *rest == 'N' ? VALUE_NUMBER : VALUE_TEXT;
        rest += taken;
    }
    rest += strspn(rest, " ");
    snprintf(option->help, sizeof(option->help), "%s", rest);
}

static void read_options(char *help, struct completion *entry)
{
    char *state = NULL;
    for (char *line = strtok_r(help, "\n", &state); line; line = strtok_r(NULL, "\n", &state))
        if (strncmp(line, "  -", 3) == 0 && entry->options_count < COMPLETION_OPTIONS_MAX - 1)
            read_option(line + 2, &entry->options[entry->options_count++]);
    entry->options[entry->options_count++] =
        (struct completion_option){"--help", VALUE_NONE, "these options"};
}

/* From the usage: what it is in capitals, or the choices. */
static void read_word(struct completion *entry)
{
    const char *usage = entry->verb->usage;
    size_t size = strcspn(usage, " ");
    entry->word = WORD_NONE;
    if (strncmp(usage, "JOB", 3) == 0)
        entry->word = WORD_JOBS;
    else if (strncmp(usage, "SPEC", 4) == 0 || strncmp(usage, "FILE|EXAMPLE", 12) == 0)
        entry->word = WORD_SPEC;
    else if (*usage >= 'a' && *usage <= 'z')
        entry->word = WORD_CHOICES;
    else if (*usage >= 'A' && *usage <= 'Z' && strncmp(usage, "URL", 3) != 0)
        entry->word = WORD_FILES;
    if (entry->word != WORD_CHOICES)
        return;
    snprintf(entry->choices, sizeof(entry->choices), "%.*s", (int)size, usage);
    for (char *c = entry->choices; *c; c++)
        *c = *c == '|' ? ' ' : *c;
}

static bool read_entry(const struct verb *verb, struct completion *entry, struct error *err)
{
    *entry = (struct completion){.verb = verb};
    struct str help = {0};
    bool ok = help_ask(verb->name, &help, err);
    if (ok) {
        str_add_char(&help, '\n');
        read_options(help.data, entry);
        read_word(entry);
    }
    str_release(&help);
    return ok;
}

/* --- for the writers --- */

void completion_put_quoted(const char *text, const char *special, const char *quote)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs(quote, stdout);
        else if (strchr(special, *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

void completion_put_examples(void)
{
    for (int i = 0; i < spec_example_count(); i++)
        printf("%s%s", i ? " " : "", spec_example_at(i)->name);
}

int completion_main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*put)(const struct completion *verbs, int count);
    } shells[] = {{"bash", completion_bash_put},
                  {"zsh", completion_zsh_put},
                  {"fish", completion_fish_put}};
    static const char usage[] =
        "completion bash|zsh|fish     (prints a script; its first lines say how to load it)";
    const struct option_row rows[] = {{0}};
    struct options_words words;
    struct error err;
    if (cli_wants_help(argc, argv))
        return cli_usage(usage, rows, NULL);
    if (!options_parse(argc, argv, rows, 1, 1, &words, &err))
        return cli_usage(usage, rows, &err);
    int shell = 0;
    while (shell < ARRAY_LEN(shells) && strcmp(shells[shell].name, words.word[0]) != 0)
        shell++;
    if (shell == ARRAY_LEN(shells)) {
        fail(&err, INVALID, "'%.40s' is no shell that is known here", words.word[0]);
        return cli_usage(usage, rows, &err);
    }
    struct completion *verbs = alloc_array((size_t)verbs_all_count, sizeof(*verbs));
    bool ok = true;
    for (int i = 0; i < verbs_all_count && ok; i++)
        ok = read_entry(&verbs_all[i], &verbs[i], &err);
    if (ok)
        shells[shell].put(verbs, verbs_all_count);
    free(verbs);
    return ok ? CLI_OK : cli_fail(&err);
}
