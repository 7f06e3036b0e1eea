/*
 * config.h - the arguments of what has a class: a layer, loss, optimizer, initialiser, metric.
 *
 * A class is a table of its arguments with their types, bounds and defaults, named as in Keras.
 * One reader for all of them fills in what was not said and refuses, with a JSON pointer, what
 * is wrong; one writer gives it back with every default.  Whoever implements the class asks for
 * its arguments by name.
 *
 *   in a job spec   "Adam"   {"name": "Adam", "learning_rate": 0.1}   {"layer": "Dense", ...}
 *   in Keras        {"class_name": "Adam", "config": {"learning_rate": 0.1, ...}}
 */
#pragma once

#include "runtime/spec/spec_read.h"

struct arena;
struct config;
struct str;

enum config_type {
    CONFIG_BOOL,
    CONFIG_INT,
    CONFIG_REAL,
    CONFIG_TEXT,
    CONFIG_CHOICE, /* one of `choices` */
    CONFIG_INTS,   /* `count` of them (one stands for all), or with 0 as many as are given */
    CONFIG_REALS,  /* the same; lists in lists are one list */
    CONFIG_SIDES,  /* before and after, of `count` dimensions: 1, [1, 2], [[1, 2], [0, 1]] */
    CONFIG_OBJECT, /* a class of `family` */
};

struct config_argument {
    const char *name;
    enum config_type type;
    const char *initial; /* as JSON: "0.5", "\"valid\"", "null"; NULL: must be given */
    double min, max;     /* of numbers, alone or in lists; both 0: any */
    int count;
    const char *const *choices;         /* ends with NULL */
    const struct config_family *family; /* of CONFIG_OBJECT */
    const char *wanted;                 /* (optional) for one who left it out */
    const char *spelled; /* (optional) in specs, where the key of the family has the name */
};

struct config_class {
    const char *name;           /* "Conv2D" */
    const char *const *aliases; /* (optional) ends with NULL */
    const struct config_argument *arguments;
    int arguments_count;
    /* (optional) What a table cannot say; called when all arguments are read. */
    bool (*check)(const struct config *config, struct error *err);
};

/* Classes of one kind.  Functions break the circle of families that hold each other. */
struct config_family {
    const char *what; /* "layer" */
    const char *key;  /* the field that names the class in a spec: "name", of layers "layer" */
    const struct config_argument *common; /* arguments that every class has */
    int common_count;
    const char *number; /* (optional) the class of a bare number, which is its first argument */
    const struct config_class *(*at)(int index); /* NULL after the last */
};

struct config_value {
    bool is_null;
    int count; /* of lists */
    union {
        bool flag;
        int64_t number; /* also the index of a choice */
        double real;
        const char *text;
        const int64_t *ints;
        const double *reals;
        const struct config *object;
    };
};

struct config {
    const struct config_class *class;
    const struct config_family *family;
    const char *pointer;               /* where it stood, for errors found later */
    const struct config_value *values; /* those of the class, then the common ones */
};

#define CONFIG_ARG(name_, type_, initial_)                                                     \
    .name = (name_), .type = (type_), .initial = (initial_)
#define CONFIG_RANGE(min_, max_) .min = (min_), .max = (max_)
#define CONFIG_ARGUMENTS(array) .arguments = (array), .arguments_count = ARRAY_LEN(array)

/* --- reading --- */

/*
 * What `field` of `object` holds: a class by its name alone, or an object with its arguments.
 * `*out` is NULL when the field is absent; it lives in the object's arena.  Fails with INVALID.
 */
bool config_read(const struct spec_object *object, const char *field,
                 const struct config_family *family, const struct config **out) CHECKED;

/* The arguments of `class` in an object, whose `others` (ends with NULL) are not its affair. */
bool config_read_object(const struct spec_object *object, const struct config_class *class,
                        const struct config_family *family, const char *const *others,
                        const struct config **out) CHECKED;

/*
 * The same of a Keras configuration, {"class_name", "config"} or a name.  Keras writes many
 * fields that say nothing about the computation, so unknown ones are passed over.
 */
bool config_read_keras(const struct spec_object *object, const char *field,
                       const struct config_family *family, const struct config **out) CHECKED;
bool config_read_keras_object(const struct spec_object *object,
                              const struct config_class *class,
                              const struct config_family *family,
                              const struct config **out) CHECKED;

/* `class` with nothing but defaults, which it must have. */
const struct config *config_default(const struct config_class *class,
                                    const struct config_family *family, struct arena *arena);

/* The class of that name, case and underscores aside; NULL when there is none. */
const struct config_class *config_find(const struct config_family *family, const char *name);

/* As config_find(); refuses an unknown name with the nearest one.  NULL after setting `err`. */
const struct config_class *config_find_at(const struct config_family *family, const char *name,
                                          const char *pointer, struct error *err);

/* "MaxPooling2D" as Keras names things after it: "max_pooling2d". */
const char *config_snake(struct arena *arena, const char *class_name);

/* The arguments of a configuration, in the order of its values. */
int config_arguments_count(const struct config *config);
const struct config_argument *config_argument_at(const struct config *config, int index);

/* The argument's name in a spec. */
const char *config_spelling(const struct config_argument *argument);

/* --- asking: the argument is there and of that type (asserted) --- */

bool config_bool(const struct config *config, const char *name);
int64_t config_int(const struct config *config, const char *name);
double config_real(const struct config *config, const char *name);
const char *config_text(const struct config *config, const char *name);
const char *config_choice(const struct config *config, const char *name);
const int64_t *config_ints(const struct config *config, const char *name, int *count);
const double *config_reals(const struct config *config, const char *name, int *count);
const struct config *config_object(const struct config *config, const char *name);

/* Whether it is null; every argument may be asked.  False for one the class has not. */
bool config_is_null(const struct config *config, const char *name);

/* Whether the class has such an argument. */
bool config_has(const struct config *config, const char *name);

bool config_is(const struct config *config, const char *class_name);

/* --- writing --- */

/* Appends `, "units": 10, ...` with every argument, as config_read_object() takes it back. */
void config_write_arguments(const struct config *config, struct str *out);

/* Appends the value of one of them alone, by its index. */
void config_write_argument(const struct config *config, int index, struct str *out);

/* Appends the shortest decimal that reads back as the same number. */
void config_write_number(double value, struct str *out);

/*
 * Appends a Markdown table of a family: classes with their arguments and defaults, in front of
 * it the arguments that all of them have.
 */
void config_describe(const struct config_family *family, struct str *out);

/* Appends {"name": "Adam", ...}. */
void config_write(const struct config *config, struct str *out);
