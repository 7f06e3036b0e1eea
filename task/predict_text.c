/* predict_text.c - draws tokens, one after the other. */

#include "task/predict_text.h"

#include <math.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/dataset/tokenizer.h"
#include "runtime/model/layer.h"
#include "runtime/philox.h"
#include "runtime/spec/spec.h"
#include "runtime/tensor.h"

struct writer {
    const struct predict_model *model;
    const struct predict_text_options *options;
    struct tokenizer *tokenizer;
    struct tokenizer_ids ids;
    int64_t window; /* tokens that the model looks at */
    int64_t tokens; /* that there are */
    bool every;     /* it tells what follows each of them, not the last alone */
    bool logits;    /* it gives numbers from before the softmax */
    double *weights;
};

static bool refuse(const struct predict_model *model, const char *why, struct error *err)
{
    return fail(err, INVALID, "%s is no model that goes on with a text: %s",
                model->is_trained ? model->trained.spec->name : "a SavedModel", why);
}

/* Whether it takes tokens and gives a number for each that may follow. */
static bool check_model(struct writer *w, struct error *err)
{
    const struct predict_model *model = w->model;
    const struct signature *signature = model->signature;
    const struct signature_tensor *in = signature->inputs, *out = signature->outputs;
    if (!model->is_trained || !model->trained.dataset.vocabulary)
        return refuse(model, "it was not trained on one (data with a tokenizer)", err);
    const char *vocabulary = model->trained.dataset.vocabulary;
    w->tokenizer = tokenizer_read(vocabulary, strlen(vocabulary), err);
    if (!w->tokenizer)
        return false;
    w->tokens = tokenizer_size(w->tokenizer);
    w->every = out->shape.rank == 3;
    if (signature->inputs_count != 1 || in->shape.rank != 2 || in->dtype != I32)
        return refuse(model, "it does not take one window of tokens", err);
    w->window = in->shape.dims[1];
    if (w->window < 1 || out->shape.rank < 2 || out->shape.rank > 3 || out->dtype != F32 ||
        (w->every && out->shape.dims[1] != w->window) ||
        out->shape.dims[out->shape.rank - 1] < w->tokens)
        return refuse(model, "it does not give a number for each token that may follow", err);
    const struct spec *spec = model->trained.spec;
    const char *activation = layer_activation(spec->layers[spec->output].config);
    w->logits = !activation || strcmp(activation, "softmax") != 0;
    return true;
}

/* The last tokens as a batch of one; what is missing stands where nothing looks at it. */
static bool fill_window(const struct writer *w, struct tensor *in, int64_t *last,
                        struct error *err)
{
    if (!tensor_init(in, I32, &SHAPE(1, w->window), err))
        return false;
    int32_t *to = in->data;
    int64_t have = w->ids.count < w->window ? w->ids.count : w->window;
    int64_t first = w->every ? 0 : w->window - have;
    memset(to, 0, (size_t)w->window * sizeof(*to));
    memcpy(to + first, w->ids.ids + w->ids.count - have, (size_t)have * sizeof(*to));
    *last = first + have - 1;
    return true;
}

/* How likely each token is, up to a factor. */
static void weigh(const struct writer *w, const float *scores)
{
    double best = -INFINITY, temperature = w->options->temperature;
    for (int64_t i = 0; i < w->tokens; i++) {
        double score = (double)scores[i];
        w->weights[i] = w->logits ? score : log(score);
        /* Token 0 stands for what the vocabulary has not. */
        if ((i == 0 && tokenizer_kind(w->tokenizer) != TOKENIZER_BYTES) || isnan(score))
            w->weights[i] = -INFINITY;
        best = fmax(best, w->weights[i]);
    }
    for (int64_t i = 0; i < w->tokens; i++)
        w->weights[i] = temperature > 0 ? exp((w->weights[i] - best) / temperature)
                                        : (double)(w->weights[i] == best);
}

static int32_t draw(const struct writer *w, int64_t step)
{
    const struct philox philox = {.key = (uint64_t)w->options->seed};
    uint32_t words[4];
    double sum = 0;
    philox_block(&philox, (uint64_t)step, words);
    for (int64_t i = 0; i < w->tokens; i++)
        sum += w->weights[i];
    double at = sum * ((double)words[0] + (double)words[1] * 0x1p-32) * 0x1p-32;
    int32_t last = 0;
    for (int64_t i = 0; i < w->tokens; i++) {
        if (!(w->weights[i] > 0))
            continue;
        last = (int32_t)i;
        at -= w->weights[i];
        if (at < 0)
            break;
    }
    return last;
}

static bool next_token(struct writer *w, int64_t step, int32_t *token, struct error *err)
{
    struct tensor in, out;
    int64_t last;
    if (!fill_window(w, &in, &last, err))
        return false;
    bool ok = signature_run(w->model->signature, w->model->session, &in, &out, err);
    tensor_release(&in);
    if (!ok)
        return false;
    int64_t numbers = out.shape.dims[out.shape.rank - 1];
    weigh(w, tensor_f32(&out) + (w->every ? last * numbers : 0));
    *token = draw(w, step);
    tensor_release(&out);
    return true;
}

static void print(const struct writer *w, const int32_t *ids, int64_t count)
{
    struct str text = {0};
    tokenizer_decode(w->tokenizer, ids, count, &text);
    fwrite(str_text(&text), 1, text.size, stdout);
    fflush(stdout);
    str_release(&text);
}

static bool go_on(struct writer *w, struct error *err)
{
    const char *prompt = w->options->prompt;
    int32_t *room;
    if (!tokenizer_encode(w->tokenizer, prompt, strlen(prompt), &w->ids, err))
        return error_prefix(err, "the prompt: ");
    if (!w->ids.count)
        return fail(err, INVALID, "--text is empty: what is it to go on with?");
    w->weights = alloc_array((size_t)w->tokens, sizeof(*w->weights));
    fputs(prompt, stdout);
    bool words = tokenizer_kind(w->tokenizer) == TOKENIZER_WORDS;
    for (int64_t step = 0; step < w->options->length; step++) {
        int32_t token;
        if (!next_token(w, step, &token, err))
            return false;
        if (words)
            putchar(' ');
        print(w, &token, 1);
        if (w->ids.count == w->ids.capacity) {
            w->ids.capacity = 2 * w->ids.capacity + 64;
            room = alloc_resize(w->ids.ids, (size_t)w->ids.capacity * sizeof(*room));
            w->ids.ids = room;
        }
        w->ids.ids[w->ids.count++] = token;
    }
    putchar('\n');
    return true;
}

bool predict_text(const struct predict_model *model, const struct predict_text_options *options,
                  struct error *err)
{
    struct writer w = {.model = model, .options = options};
    bool ok = check_model(&w, err) && go_on(&w, err);
    tokenizer_ids_release(&w.ids);
    tokenizer_free(w.tokenizer);
    free(w.weights);
    return ok;
}
