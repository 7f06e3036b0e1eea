/* status.c - codes and texts, buffers, and what a program starts with. */

#include <string.h>

#include "base/alloc.h"
#include "capi/internal.h"
#include "kernels/list.h"

const char *ty_version(void)
{
    return "0.1.0";
}

static void start_once(void)
{
    if (!kernel_at(0, 0)) /* a program that has the kernels already adds them itself */
        kernels_add(false);
}

void capi_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_once);
}

/* --- status --- */

struct ty_status *ty_status_new(void)
{
    return alloc_bytes(sizeof(struct ty_status));
}

void ty_status_free(struct ty_status *status)
{
    free(status);
}

enum ty_code ty_status_code(const struct ty_status *status)
{
    return (enum ty_code)status->err.code;
}

const char *ty_status_message(const struct ty_status *status)
{
    return status->err.text;
}

void ty_status_set(struct ty_status *status, enum ty_code code, const char *message)
{
    status->err.code = (enum error_code)code;
    snprintf(status->err.text, sizeof(status->err.text), "%s", code == TY_OK ? "" : message);
}

void capi_result(struct ty_status *status, bool ok, const struct error *err)
{
    if (ok)
        ty_status_set(status, TY_OK, "");
    else
        status->err = *err;
}

/* --- buffers --- */

struct ty_buffer *ty_buffer_new(void)
{
    return alloc_bytes(sizeof(struct ty_buffer));
}

struct ty_buffer *ty_buffer_new_copy(const void *data, size_t size)
{
    struct ty_buffer *buffer = ty_buffer_new();
    str_add_bytes(&buffer->bytes, data, size);
    return buffer;
}

void ty_buffer_free(struct ty_buffer *buffer)
{
    if (!buffer)
        return;
    str_release(&buffer->bytes);
    free(buffer);
}

const void *ty_buffer_data(const struct ty_buffer *buffer)
{
    return str_text(&buffer->bytes);
}

size_t ty_buffer_size(const struct ty_buffer *buffer)
{
    return buffer->bytes.size;
}
