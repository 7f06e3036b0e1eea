/*
 * spec_keras_policy.c - the "dtype" of a layer as Keras writes it: a type's name, or a policy,
 * {"class_name": "DTypePolicy", "config": {"name": "mixed_bfloat16"}}.
 */

#include "base/error.h"
#include "runtime/dtype.h"
#include "runtime/spec/spec_internal.h"

static const char *policy_name(const json_t *dtype)
{
    if (json_is_object(dtype))
        dtype = json_object_get(json_object_get(dtype, "config"), "name");
    return json_is_string(dtype) ? json_string_value(dtype) : NULL;
}

bool spec_read_keras_policy(const struct spec_object *config, int *precision)
{
    const json_t *dtype = json_object_get(config->json, "dtype");
    const char *name = policy_name(dtype);
    if (!dtype || json_is_null(dtype))
        return true;
    if (name && !strcmp(name, "mixed_bfloat16")) {
        *precision = BF16;
        return true;
    }
    /* Types of inputs, of which the data decides, are no concern here. */
    int type = name ? (int)dtype_find(name) : DTYPE_NONE;
    if (type == F32 || (dtype_known(type) && !(BIT(type) & DTYPES_FLOAT)))
        return true;
    return error_at(config->err, spec_read_pointer(config, "dtype", -1), UNIMPLEMENTED,
                    "the layer computes in \"%s\": this version has float32 and mixed_bfloat16",
                    name ? name : "a policy of its own");
}
