/* config_value.c - gives the arguments of a class, and writes them; see config.h. */

#include "base/str.h"
#include "runtime/spec/config.h"

int config_arguments_count(const struct config *config)
{
    return config->class->arguments_count + config->family->common_count;
}

const struct config_argument *config_argument_at(const struct config *config, int index)
{
    return index < config->class->arguments_count
               ? &config->class->arguments[index]
               : &config->family->common[index - config->class->arguments_count];
}

/* --- asking --- */

static const struct config_value *find(const struct config *config, const char *name,
                                       const struct config_argument **argument)
{
    for (int i = 0; i < config_arguments_count(config); i++) {
        *argument = config_argument_at(config, i);
        if (!strcmp((*argument)->name, name))
            return &config->values[i];
    }
    return NULL;
}

static const struct config_value *value_of(const struct config *config, const char *name,
                                           enum config_type type, enum config_type or_type)
{
    const struct config_argument *argument;
    const struct config_value *value = find(config, name, &argument);
    assert(value && (argument->type == type || argument->type == or_type));
    (void)type, (void)or_type;
    return value;
}

bool config_has(const struct config *config, const char *name)
{
    const struct config_argument *argument;
    return find(config, name, &argument);
}

bool config_is_null(const struct config *config, const char *name)
{
    const struct config_argument *argument;
    const struct config_value *value = find(config, name, &argument);
    return value && value->is_null;
}

bool config_bool(const struct config *config, const char *name)
{
    return value_of(config, name, CONFIG_BOOL, CONFIG_BOOL)->flag;
}

int64_t config_int(const struct config *config, const char *name)
{
    return value_of(config, name, CONFIG_INT, CONFIG_INT)->number;
}

double config_real(const struct config *config, const char *name)
{
    return value_of(config, name, CONFIG_REAL, CONFIG_REAL)->real;
}

const char *config_text(const struct config *config, const char *name)
{
    return value_of(config, name, CONFIG_TEXT, CONFIG_TEXT)->text;
}

const char *config_choice(const struct config *config, const char *name)
{
    const struct config_argument *argument;
    const struct config_value *value = find(config, name, &argument);
    assert(value && argument->type == CONFIG_CHOICE);
    return value->is_null ? NULL : argument->choices[value->number];
}

const int64_t *config_ints(const struct config *config, const char *name, int *count)
{
    const struct config_value *value = value_of(config, name, CONFIG_INTS, CONFIG_SIDES);
    if (count)
        *count = value->count;
    return value->is_null ? NULL : value->ints;
}

const double *config_reals(const struct config *config, const char *name, int *count)
{
    const struct config_value *value = value_of(config, name, CONFIG_REALS, CONFIG_REALS);
    if (count)
        *count = value->count;
    return value->is_null ? NULL : value->reals;
}

const struct config *config_object(const struct config *config, const char *name)
{
    const struct config_value *value = value_of(config, name, CONFIG_OBJECT, CONFIG_OBJECT);
    return value->is_null ? NULL : value->object;
}

bool config_is(const struct config *config, const char *class_name)
{
    return !strcmp(config->class->name, class_name);
}

/* --- writing --- */

void config_write_number(double value, struct str *out)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    str_add(out, text);
}

static void write_list(const struct config_value *value, bool reals, struct str *out)
{
    str_add_char(out, '[');
    for (int i = 0; i < value->count; i++) {
        str_add(out, i ? ", " : "");
        if (reals)
            config_write_number(value->reals[i], out);
        else
            str_printf(out, "%lld", (long long)value->ints[i]);
    }
    str_add_char(out, ']');
}

static void write_sides(const struct config_value *value, struct str *out)
{
    bool one = value->count == 2; /* [before, after] */
    str_add(out, one ? "" : "[");
    for (int i = 0; i < value->count; i += 2)
        str_printf(out, "%s[%lld, %lld]", i ? ", " : "", (long long)value->ints[i],
                   (long long)value->ints[i + 1]);
    str_add(out, one ? "" : "]");
}

static void write_value(const struct config_argument *argument,
                        const struct config_value *value, struct str *out)
{
    if (value->is_null) {
        str_add(out, "null");
        return;
    }
    switch (argument->type) {
    case CONFIG_BOOL:
        str_add(out, value->flag ? "true" : "false");
        break;
    case CONFIG_INT:
        str_printf(out, "%lld", (long long)value->number);
        break;
    case CONFIG_REAL:
        config_write_number(value->real, out);
        break;
    case CONFIG_TEXT:
        str_add_json(out, value->text, strlen(value->text));
        break;
    case CONFIG_CHOICE:
        str_printf(out, "\"%s\"", argument->choices[value->number]);
        break;
    case CONFIG_INTS:
    case CONFIG_REALS:
        write_list(value, argument->type == CONFIG_REALS, out);
        break;
    case CONFIG_SIDES:
        write_sides(value, out);
        break;
    case CONFIG_OBJECT:
        config_write(value->object, out);
        break;
    }
}

const char *config_spelling(const struct config_argument *argument)
{
    return argument->spelled ? argument->spelled : argument->name;
}

void config_write_argument(const struct config *config, int index, struct str *out)
{
    write_value(config_argument_at(config, index), &config->values[index], out);
}

void config_write_arguments(const struct config *config, struct str *out)
{
    for (int i = 0; i < config_arguments_count(config); i++) {
        str_printf(out, ", \"%s\": ", config_spelling(config_argument_at(config, i)));
        write_value(config_argument_at(config, i), &config->values[i], out);
    }
}

void config_write(const struct config *config, struct str *out)
{
    const struct config_family *family = config->family;
    if (family->number && config_is(config, family->number)) {
        write_value(&config->class->arguments[0], &config->values[0], out);
        return;
    }
    str_printf(out, "{\"%s\": \"%s\"", family->key, config->class->name);
    config_write_arguments(config, out);
    str_add_char(out, '}');
}
