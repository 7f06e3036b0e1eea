/* openapi.c - the API's own description. */

#include "server/openapi.h"
#include "base/error.h"
#include "server/api/api.h"
#include "server/reply.h"

static bool openapi_show(struct request *req, struct error *err)
{
    return reply_json(req, 200, openapi_document(), err);
}

const struct route openapi_routes[] = {
    {"GET", "/api/v1/openapi.json", AUTH_IN_PROJECT(ROLE_VIEWER), openapi_show,
     "This description", NULL, NULL, 200, NULL},
    {0},
};
