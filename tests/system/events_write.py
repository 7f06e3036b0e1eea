"""Event files as TensorFlow's and PyTorch's writers make them, without either: v1 values and v2 tensors."""
import os
import struct
import time

TABLE = []
for n in range(256):
    for _ in range(8):
        n = (n >> 1) ^ 0x82F63B78 if n & 1 else n >> 1
    TABLE.append(n)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(file, event):
    head = struct.pack("<Q", len(event))
    file.write(head + struct.pack("<I", masked_crc(head)) + event + struct.pack("<I", masked_crc(event)))
    file.flush()


def event(step, rest):
    return b"\x09" + struct.pack("<d", time.time()) + b"\x10" + varint(step) + rest


def v1(tag, value):  # simple_value
    return field(5, field(1, field(1, tag) + b"\x15" + struct.pack("<f", value)))


def v2(tag, value):  # a float tensor of rank 0, of the plugin "scalars"
    tensor = b"\x08\x01" + field(2, b"") + field(4, struct.pack("<f", value))
    metadata = field(1, field(1, b"scalars"))
    return field(5, field(1, field(1, tag) + field(9, metadata) + field(8, tensor)))


def opened(*folders):
    folder = os.path.join(os.environ["TRAINYARD_OUT"], *folders)
    os.makedirs(folder, exist_ok=True)
    file = open(os.path.join(folder, "events.out.tfevents.%d.host" % time.time()), "ab")
    record(file, event(0, field(3, b"brain.Event:2")))
    return file


if __name__ == "__main__":
    loss = opened()
    for step in range(100):
        record(loss, event(step, v1(b"loss", 1 / (1 + step))))
    for name, values in ("train", (0.5, 0.25)), ("validation", (0.75, 0.5)):
        file = opened(name)
        for step, value in enumerate(values):
            record(file, event(step, v2(b"epoch_loss", value)))
