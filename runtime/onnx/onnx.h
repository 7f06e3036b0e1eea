/*
 * onnx.h - a model's forward pass as an ONNX model: operators of the default domain, opset 17.
 *
 * The graph's ops become ONNX's one by one; what is computed from constants and weights alone
 * is computed now and stored.  Images go through convolutions and poolings with their channels
 * first, as ONNX has them; they are turned only where an op wants them last.
 */
#pragma once

#include "base/base.h"

struct error;
struct graph;
struct model_variable;
struct session;
struct signature;
struct str;
struct tensor;

struct onnx_source {
    const char *name; /* of the model */
    const struct graph *graph;
    const struct signature *signature; /* what goes in and comes out, with these names */
    struct session *session;           /* has the graph, and the variables' values */
    const struct model_variable *variables;
    const struct tensor *values; /* of the variables; no tensor where none is needed */
    int variables_count;
};

/*
 * Appends the serialized model.  A dimension of examples that is open is "batch".  Fails with
 * UNIMPLEMENTED when an op has no counterpart, naming the layer and the op, with EXHAUSTED when
 * the weights are more than one file can hold.
 */
bool onnx_convert(const struct onnx_source *source, struct str *out, struct error *err) CHECKED;

/* The operators' version. */
#define ONNX_OPSET 17
