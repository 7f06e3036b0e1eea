/* body.c - from bytes to an object whose fields can be read. */

#include "server/body.h"
#include "base/error.h"
#include "runtime/spec/spec_read.h"
#include "server/request.h"

json_t *body_object(struct request *req, struct spec_object *object, struct error *err)
{
    json_error_t where;
    json_t *body = req->body_size
                       ? json_loadb(req->body, req->body_size, JSON_REJECT_DUPLICATES, &where)
                       : json_object();
    if (!json_is_object(body)) {
        json_decref(body);
        return fail_null(err, INVALID, "the body must be a JSON object");
    }
    *object = (struct spec_object){body, "", req->arena, err};
    return body;
}
