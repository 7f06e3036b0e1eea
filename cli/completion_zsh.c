/* completion_zsh.c - the script for zsh. */

#include "cli/completion.h"

static void put_verb(const struct completion *verb)
{
    static const char *const values[] = {
        [VALUE_NONE] = "", [VALUE_NUMBER] = ":number:", [VALUE_TEXT] = ":value:_files"};
    static const char *const words[] = {
        [WORD_NONE] = "",
        [WORD_FILES] = " '*:file:_files'",
        [WORD_SPEC] = " '1:spec:_trainyard_specs'",
        [WORD_JOBS] = " '*:job:_trainyard_jobs'",
        [WORD_CHOICES] = " '*:file:_files'",
    };
    printf("    %s) _arguments", verb->verb->name);
    for (int i = 0; i < verb->options_count; i++) {
        const struct completion_option *option = &verb->options[i];
        printf(" '%s[", option->name);
        completion_put_quoted(option->help, "[]:\\", "'\\''");
        printf("]%s'", values[option->value]);
    }
    if (verb->word == WORD_CHOICES)
        printf(" '1:what:(%s)'", verb->choices);
    printf("%s ;;\n", words[verb->word]);
}

static void put_verbs(const struct completion *verbs, int count)
{
    for (int i = 0; i < count; i++) {
        printf("        '%s:", verbs[i].verb->name);
        completion_put_quoted(verbs[i].verb->summary, ":\\", "'\\''");
        puts("'");
    }
}

void completion_zsh_put(const struct completion *verbs, int count)
{
    puts("#compdef trainyard\n"
         "# trainyard in zsh, after compinit:  source <(trainyard completion zsh)\n"
         "_trainyard_jobs() {\n"
         "    local -a jobs\n"
         "    jobs=(${(f)\"$(" COMPLETION_JOBS ")\"})\n"
         "    compadd -a jobs\n"
         "}\n"
         "_trainyard_specs() {");
    fputs("    compadd ", stdout);
    completion_put_examples();
    puts("\n"
         "    _files\n"
         "}\n"
         "_trainyard() {\n"
         "    local -a verbs\n"
         "    verbs=(");
    put_verbs(verbs, count);
    puts("    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe verb verbs\n"
         "        return\n"
         "    fi\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $words[1] in");
    for (int i = 0; i < count; i++)
        put_verb(&verbs[i]);
    puts("    esac\n"
         "}\n"
         "(( $+functions[compdef] )) && compdef _trainyard trainyard");
}
