/* signature.c - checks what a signature is given, and calls it. */

#include "runtime/signature.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "runtime/session.h"
#include "runtime/tensor.h"

int signature_find_input(const struct signature *signature, const char *name)
{
    for (int i = 0; i < signature->inputs_count; i++) {
        if (!strcmp(signature->inputs[i].name, name))
            return i;
    }
    return -1;
}

void signature_print(const struct signature_tensor *tensors, int count, struct str *out)
{
    for (int i = 0; i < count; i++) {
        str_printf(out, "%s%s %s ", i ? ", " : "", tensors[i].name,
                   dtype_name(tensors[i].dtype));
        shape_print(&tensors[i].shape, out);
    }
}

/* The input as it is to be fed; an absent one has no type. */
static bool check_input(const struct signature_tensor *input, const struct tensor *given,
                        struct error *err)
{
    char found[SHAPE_TEXT_BYTES], wanted[SHAPE_TEXT_BYTES];
    if (!given->dtype)
        return input->when_absent || fail(err, INVALID, "input \"%s\" is missing", input->name);
    if ((int)given->dtype != input->dtype)
        return fail(err, INVALID, "input \"%s\" takes %s, found %s", input->name,
                    dtype_name(input->dtype), dtype_name(given->dtype));
    if (!shape_compatible(&given->shape, &input->shape))
        return fail(err, INVALID, "input \"%s\" takes %s, found %s", input->name,
                    shape_text(&input->shape, wanted, sizeof(wanted)),
                    shape_text(&given->shape, found, sizeof(found)));
    return true;
}

bool signature_run(const struct signature *signature, struct session *session,
                   const struct tensor *inputs, struct tensor *outputs, struct error *err)
{
    int count = signature->inputs_count, fetches_count = signature->outputs_count;
    const char **names = alloc_array((size_t)count + (size_t)fetches_count + 1, sizeof(*names));
    const char **fetches = names + count;
    struct tensor *feeds = alloc_array((size_t)count + 1, sizeof(*feeds)); /* borrowed */
    bool ok = fetches_count > 0 ||
              fail(err, INVALID, "signature \"%s\" gives nothing", signature->name);
    for (int i = 0; ok && i < count; i++) {
        names[i] = signature->inputs[i].tensor;
        feeds[i] = inputs[i].dtype ? inputs[i] : (struct tensor){0};
        ok = check_input(&signature->inputs[i], &inputs[i], err);
        if (ok && !inputs[i].dtype)
            feeds[i] = *signature->inputs[i].when_absent;
    }
    for (int i = 0; i < fetches_count; i++)
        fetches[i] = signature->outputs[i].tensor;
    const struct session_run run = {.feeds = names,
                                    .feed_values = feeds,
                                    .feeds_count = count,
                                    .fetches = fetches,
                                    .fetches_count = fetches_count};
    ok = ok && session_run(session, &run, outputs, err);
    free(names);
    free(feeds);
    return ok;
}
