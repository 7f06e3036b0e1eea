/* spec_internal.h - the parts of spec.c: each parses one section into the spec. */
#pragma once

#include "runtime/spec/spec.h"
#include "runtime/spec/spec_read.h"

/* All return false after setting the object's error. */
#define SPEC_BATCH_MAX 1000000 /* examples in a step, of all workers */

bool spec_parse_model(const struct spec_object *model,
                      struct spec *spec) CHECKED; /* spec_model.c */
bool spec_parse_keras(const struct spec_object *model,
                      struct spec *spec) CHECKED; /* spec_keras.c: its field "keras" */
bool spec_parse_graph(const struct spec_object *model,
                      struct spec *spec) CHECKED; /* spec_graph.c: its field "graph" */
void spec_graph_write(const struct spec_graph *graph, struct str *out);
/* What a layer's config says of its type: *precision becomes BF16 where it is mixed_bfloat16
 * (spec_keras_policy.c). */
bool spec_read_keras_policy(const struct spec_object *config, int *precision) CHECKED;
bool spec_parse_data(const struct spec_object *data,
                     struct spec *spec) CHECKED; /* spec_data.c */
bool spec_parse_train(const struct spec_object *train,
                      struct spec *spec) CHECKED; /* spec_train.c */
bool spec_parse_optimizer(const struct spec_object *train,
                          struct spec_train *out) CHECKED; /* spec_optimizer.c */
bool spec_parse_init(const struct spec_object *train,
                     struct spec_train *out) CHECKED; /* spec_init.c */
bool spec_parse_checkpoint(const struct spec_object *whole,
                           struct spec *spec) CHECKED; /* spec_end.c */
bool spec_parse_stop(const struct spec_object *whole,
                     struct spec *spec) CHECKED; /* spec_end.c */
extern const char *const spec_modes[]; /* the names of enum spec_mode, NULL at the end */
bool spec_parse_strategy(const struct spec_object *whole, struct spec *spec)
    CHECKED; /* spec_strategy.c: after what it looks at */
bool spec_parse_tasks(const struct spec_object *tasks,
                      struct spec *spec) CHECKED; /* spec_run.c */
bool spec_parse_placement(const struct spec_object *whole,
                          struct spec *spec) CHECKED; /* spec_run.c */
bool spec_parse_pins(const struct spec_object *placement,
                     struct spec *spec) CHECKED; /* spec_pins.c */
/* Appends the field "pins", with a comma before it (spec_pins.c). */
void spec_pins_write(const struct spec *spec, struct str *out);
bool spec_parse_restart(const struct spec_object *whole,
                        struct spec *spec) CHECKED; /* spec_run.c */
bool spec_parse_seconds(const struct spec_object *stop, struct spec *spec)
    CHECKED; /* spec_end.c: "max_seconds", "stall_seconds" */
bool spec_parse_command(const struct spec_object *whole, struct spec *spec)
    CHECKED; /* spec_command.c: the whole of such a job */
/* What is left to say of a job without a model, which has the field `kind`; refuses what only
 * a model has (spec_command.c). */
bool spec_parse_bare(const struct spec_object *whole, const char *kind,
                     struct spec *spec) CHECKED;
bool spec_parse_cluster(const struct spec_object *whole, struct spec *spec)
    CHECKED; /* spec_cluster.c: the whole of such a job */
bool spec_parse_run(const struct spec_object *whole,
                    struct spec *spec) CHECKED; /* spec_run.c */

/* What the data section says of texts and images (spec_media.c). */
bool spec_media_parse(const struct spec_object *data, struct spec_data *out) CHECKED;
void spec_media_write(const struct spec_data *data, struct str *out);

/* Appends the fields of a command as JSON, secrets by their names alone (spec_command.c). */
void spec_command_write(const struct spec_command *command, struct str *out);

/* Appends the restart section as JSON, with a comma (spec_run.c). */
void spec_restart_write(const struct spec *spec, struct str *out);

/* Appends the data section as JSON (spec_data.c). */
void spec_data_write(const struct spec_data *data, struct str *out);

/* A document of JSON that is neither too large nor too deep, and an object; a new reference
 * (spec.c). */
json_t *spec_load(const char *text, size_t size, struct error *err) CHECKED;

/* The document with its example put under it; a new reference, NULL on failure
 * (spec_example.c). */
json_t *spec_example_merge(json_t *document, struct error *err) CHECKED;
