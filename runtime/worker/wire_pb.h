/* wire_pb.h - what the files that speak WorkerService's messages share. */
#pragma once

#include "runtime/device.h"

struct Tensorflow__DeviceAttributes;
struct arena;
struct error;

struct Tensorflow__DeviceAttributes *wire_pack_device(const struct device *device,
                                                      struct arena *arena);
/* Fails with INVALID. */
bool wire_unpack_device(const struct Tensorflow__DeviceAttributes *from, struct device *to,
                        struct error *err) CHECKED;
