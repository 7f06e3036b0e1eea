/* completion_bash.c - the script for bash. */

#include "cli/completion.h"

/* NAME='--dir --port': those that take a value of these kinds. */
static void put_options(const struct completion *verb, const char *name, int values)
{
    printf(" %s='", name);
    const char *before = "";
    for (int i = 0; i < verb->options_count; i++) {
        if (!(values & 1 << verb->options[i].value))
            continue;
        printf("%s%s", before, verb->options[i].name);
        before = " ";
    }
    putchar('\'');
}

static void put_verb(const struct completion *verb)
{
    printf("    %s)", verb->verb->name);
    put_options(verb, "options", 1 << VALUE_NONE | 1 << VALUE_NUMBER | 1 << VALUE_TEXT);
    put_options(verb, "numbers", 1 << VALUE_NUMBER);
    put_options(verb, "texts", 1 << VALUE_TEXT);
    if (verb->word == WORD_CHOICES)
        printf(" first='%s'", verb->choices);
    if (verb->word == WORD_SPEC) {
        fputs(" words='", stdout);
        completion_put_examples();
        putchar('\'');
    }
    if (verb->word == WORD_JOBS)
        fputs(" jobs=yes", stdout);
    else if (verb->word != WORD_NONE)
        fputs(" files=yes", stdout);
    puts(" ;;");
}

void completion_bash_put(const struct completion *verbs, int count)
{
    puts("# trainyard in bash:  source <(trainyard completion bash)\n"
         "_trainyard() {\n"
         "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "    local options= numbers= texts= first= words= jobs= files=\n"
         "    COMPREPLY=()\n"
         "    if ((COMP_CWORD == 1)); then");
    fputs("        COMPREPLY=($(compgen -W '", stdout);
    for (int i = 0; i < count; i++)
        printf("%s%s", i ? " " : "", verbs[i].verb->name);
    puts("' -- \"$word\"))\n"
         "        return\n"
         "    fi\n"
         "    case ${COMP_WORDS[1]} in");
    for (int i = 0; i < count; i++)
        put_verb(&verbs[i]);
    puts("    esac\n"
         "    case \" $numbers \" in *\" $before \"*) return ;; esac\n"
         "    case \" $texts \" in *\" $before \"*) first= words= jobs= files=yes ;; esac\n"
         "    ((COMP_CWORD == 2)) && words+=$first\n"
         "    case $word in -*) words=$options jobs= files= ;; esac\n"
         "    [ -n \"$jobs\" ] && words=$(" COMPLETION_JOBS ")\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "    if [ -n \"$files\" ] && [ ${#COMPREPLY[@]} = 0 ]; then\n"
         "        compopt -o filenames 2>/dev/null\n"
         "        local IFS=$'\\n'\n"
         "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "    fi\n"
         "}\n"
         "complete -F _trainyard trainyard");
}
