/* predict_text.h - a model of text goes on with a text. */
#pragma once

#include "task/predict_model.h"

struct predict_text_options {
    const char *prompt;
    int64_t length;     /* tokens to add */
    double temperature; /* 1: as likely as the model says; lower: the likelier ones more so; 0:
                           always the likeliest */
    int64_t seed;       /* the same seed, the same text */
};

/*
 * Prints the prompt, then token after token, each drawn from what the model says of the tokens
 * before it.  Fails with INVALID when the model is none of text: one that takes a window of
 * tokens and gives a number for each token that may follow.
 */
bool predict_text(const struct predict_model *model, const struct predict_text_options *options,
                  struct error *err) CHECKED;
