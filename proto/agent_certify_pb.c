/* agent_certify_pb.c - what an agent asks for its certificate with. */

#include "trainyard/agent.pb-c.h"

#include "base/error.h"
#include "base/str.h"
#include "proto/agent_certify_pb.h"
#include "proto/agent_wire.h"
#include "proto/message.h"

void agent_certify_request_pack(const struct agent_certify_request *from, struct str *out)
{
    Pb__CertifyRequest to = PB__CERTIFY_REQUEST__INIT;
    to.token = agent_wire_text(from->token);
    to.node_name = agent_wire_text(from->node_name);
    to.request = agent_wire_text(from->request);
    message_pack(&to.base, out);
}

void agent_certify_response_pack(const struct agent_certify_response *from, struct str *out)
{
    Pb__CertifyResponse to = PB__CERTIFY_RESPONSE__INIT;
    to.certificate = agent_wire_text(from->certificate);
    message_pack(&to.base, out);
}

bool agent_certify_request_unpack(const void *bytes, size_t size, struct arena *arena,
                                  struct agent_certify_request *to, struct error *err)
{
    const Pb__CertifyRequest *from =
        message_unpack(&pb__certify_request__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "CertifyRequest: ");
    *to = (struct agent_certify_request){
        .token = from->token, .node_name = from->node_name, .request = from->request};
    return true;
}

bool agent_certify_response_unpack(const void *bytes, size_t size, struct arena *arena,
                                   struct agent_certify_response *to, struct error *err)
{
    const Pb__CertifyResponse *from =
        message_unpack(&pb__certify_response__descriptor, bytes, size, arena, err);
    if (!from)
        return error_prefix(err, "CertifyResponse: ");
    to->certificate = from->certificate;
    return true;
}
