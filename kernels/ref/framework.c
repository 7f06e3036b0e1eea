/* framework.c - ops that give or pass on values without computing. */

#include "base/str.h"
#include "kernels/ref/numbers.h"
#include "kernels/ref/summarize.h"

#include <math.h>

static bool nothing_run(struct kernel_call *call, struct error *err)
{
    (void)call;
    (void)err;
    return true;
}

static bool const_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *value = node_attr_tensor(call->node, "value");
    enum dtype dtype = (enum dtype)node_attr_type(call->node, "dtype");
    if (!value || value->dtype != dtype)
        return fail(err, INVALID, "a constant of type %s holds a value of type %s",
                    dtype_name(dtype), value ? dtype_name(value->dtype) : "nothing");
    kernel_output_share(call, 0, value, &value->shape);
    return true;
}

static bool placeholder_run(struct kernel_call *call, struct error *err)
{
    return fail(err, INVALID, "You must feed a value for placeholder tensor '%s' with dtype %s",
                node_shown_name(call->node), dtype_name(call->node->output_types[0]));
}

static bool pass_run(struct kernel_call *call, struct error *err)
{
    (void)err;
    for (int i = 0; i < call->node->outputs_count; i++) {
        const struct tensor *value = kernel_in(call, i);
        kernel_output_share(call, i, value, &value->shape);
    }
    return true;
}

static bool check_numerics_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *value = kernel_in(call, 0);
    kernel_load *load = kernel_load_for(value->dtype);
    bool nan = false, inf = false;
    for (int64_t i = 0; i < value->count; i++) {
        nan |= isnan(load(value->data, i));
        inf |= isinf(load(value->data, i));
    }
    if (nan || inf)
        return fail(err, INVALID, "%s : Tensor had %s values",
                    node_attr_string(call->node, "message", ""),
                    nan && inf ? "Inf and NaN" : (nan ? "NaN" : "Inf"));
    kernel_output_share(call, 0, value, &value->shape);
    return true;
}

static bool assert_run(struct kernel_call *call, struct error *err)
{
    const struct tensor *condition = kernel_in(call, 0);
    char shape[SHAPE_TEXT_BYTES];
    if (condition->shape.rank != 0)
        return fail(err, INVALID, "In[0] should be a scalar: %s",
                    shape_text(&condition->shape, shape, sizeof(shape)));
    if (*(const bool *)condition->data)
        return true;
    struct str text = {0};
    for (int i = 1; i < call->in_count; i++) {
        str_add(&text, i > 1 ? " [" : "[");
        kernel_summarize(kernel_in(call, i), node_attr_int(call->node, "summarize", 3), &text);
        str_add_char(&text, ']');
    }
    (void)fail(err, INVALID, "assertion failed: %s", str_text(&text));
    str_release(&text);
    return false;
}

#define ANY(name_, run_)                                                                       \
    {                                                                                          \
        .op = name_, .device = CPU, .run = run_                                                \
    }

const struct kernel kernel_no_op_ref = ANY("NoOp", nothing_run);
const struct kernel kernel_control_trigger_ref = ANY("ControlTrigger", nothing_run);
const struct kernel kernel_const_ref = ANY("Const", const_run);
const struct kernel kernel_placeholder_ref = ANY("Placeholder", placeholder_run);
const struct kernel kernel_placeholder_v2_ref = ANY("PlaceholderV2", placeholder_run);
const struct kernel kernel_placeholder_with_default_ref =
    ANY("PlaceholderWithDefault", pass_run);
const struct kernel kernel_identity_ref = ANY("Identity", pass_run);
const struct kernel kernel_identity_n_ref = ANY("IdentityN", pass_run);
const struct kernel kernel_stop_gradient_ref = ANY("StopGradient", pass_run);
const struct kernel kernel_prevent_gradient_ref = ANY("PreventGradient", pass_run);
const struct kernel kernel_check_numerics_ref = ANY("CheckNumerics", check_numerics_run);
const struct kernel kernel_assert_ref = ANY("Assert", assert_run);
