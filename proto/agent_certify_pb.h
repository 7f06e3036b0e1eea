/*
 * agent_certify_pb.h - what an agent asks for its certificate with.
 */
#pragma once

#include "base/base.h"

struct arena;
struct error;
struct str;

struct agent_certify_request {
    const char *token; /* "": by the certificate of the call */
    const char *node_name;
    const char *request; /* PEM */
};

struct agent_certify_response {
    const char *certificate; /* PEM */
};

void agent_certify_request_pack(const struct agent_certify_request *from, struct str *out);
void agent_certify_response_pack(const struct agent_certify_response *from, struct str *out);

bool agent_certify_request_unpack(const void *bytes, size_t size, struct arena *arena,
                                  struct agent_certify_request *to, struct error *err) CHECKED;
bool agent_certify_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                   struct agent_certify_response *to,
                                   struct error *err) CHECKED;
