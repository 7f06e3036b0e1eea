/*
 * imported.h - a graph that another program wrote as a model: its own ops compute the loss,
 * train and initialise; what is added feeds the data to its placeholders and counts examples.
 */
#pragma once

#include "runtime/model/model.h"

/*
 * Builds the model of spec->graph, as model_build() does.  Fails with INVALID at the field of
 * "/model/graph" that is wrong or wanted, and as graph_import() does.
 */
bool imported_build(const struct spec *spec, const struct model_data *data, struct model *out,
                    struct error *err) CHECKED;
