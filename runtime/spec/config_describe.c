/* config_describe.c - the classes of a family, for people. */

#include "base/str.h"
#include "runtime/spec/config.h"

/* `units`, `activation` "linear", ...: what must be given stands without a value. */
static void describe_arguments(const struct config_argument *arguments, int count,
                               struct str *out)
{
    for (int i = 0; i < count; i++) {
        const char *initial = arguments[i].initial;
        str_printf(out, "%s`%s`", i ? ", " : "", config_spelling(&arguments[i]));
        if (initial && strcmp(initial, "null") != 0)
            str_printf(out, " %s", initial);
        else if (!initial)
            str_add(out, " (required)");
    }
}

void config_describe(const struct config_family *family, struct str *out)
{
    const struct config_class *class;
    if (family->common_count) {
        str_printf(out, "Every %s takes ", family->what);
        describe_arguments(family->common, family->common_count, out);
        str_add(out, ".\n\n");
    }
    str_printf(out, "| %s | arguments |\n|---|---|\n", family->what);
    for (int i = 0; (class = family->at(i)); i++) {
        str_printf(out, "| `%s` | ", class->name);
        describe_arguments(class->arguments, class->arguments_count, out);
        str_add(out, " |\n");
    }
}
