/* completion_fish.c - the script for fish. */

#include "cli/completion.h"

static void put_text(const char *text)
{
    putchar('\'');
    completion_put_quoted(text, "\\", "\\'");
    putchar('\'');
}

static void put_option(const char *verb, const struct completion_option *option)
{
    static const char *const takes[] = {
        [VALUE_NONE] = "", [VALUE_NUMBER] = " -x", [VALUE_TEXT] = " -rF"};
    bool letter = option->name[1] != '-';
    printf("complete -c trainyard -n '__trainyard_verb %s' -%c %s%s -d ", verb,
           letter ? 's' : 'l', option->name + (letter ? 1 : 2), takes[option->value]);
    put_text(option->help);
    puts("");
}

static void put_word(const struct completion *verb)
{
    const char *name = verb->verb->name;
    if (verb->word == WORD_CHOICES)
        printf("complete -c trainyard -n '__trainyard_verb %s; and __trainyard_words 2' -a "
               "'%s'\n",
               name, verb->choices);
    if (verb->word == WORD_JOBS)
        printf("complete -c trainyard -n '__trainyard_verb %s' -a '(__trainyard_jobs)'\n",
               name);
    if (verb->word == WORD_SPEC) {
        printf("complete -c trainyard -n '__trainyard_verb %s; and __trainyard_words 2' -a '",
               name);
        completion_put_examples();
        puts("'");
    }
    if (verb->word != WORD_NONE && verb->word != WORD_JOBS)
        printf("complete -c trainyard -n '__trainyard_verb %s' -F\n", name);
}

void completion_fish_put(const struct completion *verbs, int count)
{
    puts("# trainyard in fish:  trainyard completion fish | source\n"
         "function __trainyard_words\n"
         "    test (count (commandline -opc)) -eq $argv[1]\n"
         "end\n"
         "function __trainyard_verb\n"
         "    set -l given (commandline -opc)\n"
         "    test (count $given) -gt 1; and test $given[2] = $argv[1]\n"
         "end\n"
         "function __trainyard_jobs\n"
         "    " COMPLETION_JOBS "\n"
         "end\n"
         "complete -c trainyard -f");
    for (int i = 0; i < count; i++) {
        printf("complete -c trainyard -n '__trainyard_words 1' -a %s -d ", verbs[i].verb->name);
        put_text(verbs[i].verb->summary);
        puts("");
        for (int k = 0; k < verbs[i].options_count; k++)
            put_option(verbs[i].verb->name, &verbs[i].options[k]);
        put_word(&verbs[i]);
    }
}
