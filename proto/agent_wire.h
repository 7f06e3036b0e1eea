/*
 * agent_wire.h - parts of messages between plain structs and protobuf-c's, which agent_pb.c and
 * agent_program_pb.c share.
 *
 * "wire" makes protobuf-c's struct, which borrows the texts; "plain" borrows texts from
 * protobuf-c's struct, which is in the arena.  To be included after the generated header.
 */
#pragma once

#include "proto/agent_pb.h"

char *agent_wire_text(const char *text); /* "" for NULL */
Pb__TaskRef *agent_wire_ref(const struct agent_task_ref *from, struct arena *arena);
Pb__TaskAddress **agent_wire_addresses(const struct agent_task_address *from, int count,
                                       struct arena *arena);
Pb__Program *agent_wire_program(const struct agent_program *from, struct arena *arena);

/* As arena_array(), for an arena whose budget a message may spend. */
void *agent_plain_array(struct arena *arena, size_t count, size_t size,
                        struct error *err) CHECKED;
void agent_plain_ref(const Pb__TaskRef *from, struct agent_task_ref *to);
bool agent_plain_addresses(Pb__TaskAddress **from, size_t count, struct arena *arena,
                           const struct agent_task_address **out, struct error *err) CHECKED;
bool agent_plain_program(const Pb__Program *from, struct arena *arena, struct agent_program *to,
                         struct error *err) CHECKED;
