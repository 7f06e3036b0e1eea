/*
 * address.h - which addresses a server may call because a user said so.
 *
 * A URL from a user must not reach what only this machine or its network can reach: services on
 * loopback, the metadata of a cloud, machines behind a firewall.
 */
#pragma once

#include "base/base.h"

struct sockaddr;

/*
 * Whether anybody on the internet could be there: not loopback, private, link-local, shared,
 * multicast, reserved or for documentation; an IPv4 address inside an IPv6 one counts as what
 * it is.  False for anything but IPv4 and IPv6.
 */
bool address_is_public(const struct sockaddr *address);
