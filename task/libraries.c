/* libraries.c - the C API's way of loading, with our errors. */

#include "task/libraries.h"

#include "base/error.h"
#include "runtime/trainyard.h"

bool libraries_load(const char *path, struct error *err)
{
    struct ty_status *status = ty_status_new();
    ty_load_library(path, status);
    bool ok =
        ty_status_code(status) == TY_OK ||
        fail(err, (enum error_code)ty_status_code(status), "%s", ty_status_message(status));
    ty_status_free(status);
    return ok;
}
