"""codec.py - images as files: packed and unpacked."""

import struct

import numpy as np
import tensorflow as tf

from .frame import Row, Step, Story


def pixels(s, channels=None, most=9):
    """Smooth, so that a lossy packer does little to it."""
    height, width = s.int(1, most), s.int(1, most)
    channels = channels or s.pick(1, 3)
    plane = np.add.outer(np.arange(height) * s.int(0, 9), np.arange(width) * s.int(0, 9))
    image = plane[..., None] + np.array([s.int(0, 200) for _ in range(channels)])
    return (image % 256).astype(np.uint8)


def packed(s, kind, channels=None):
    """Bytes of a file, made by TensorFlow."""
    if kind == "bmp":
        return bmp(s)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        if kind == "png":
            wide = s.rng.random() < 0.3
            image = pixels(s, channels or s.int(1, 4)).astype(np.uint16 if wide else np.uint8)
            return session.run(tf.raw_ops.EncodePng(image=image * 200 if wide else image))
        return session.run(tf.raw_ops.EncodeJpeg(
            image=pixels(s, channels), quality=s.int(50, 100), progressive=s.flag(),
            chroma_downsampling=s.flag()))


def bmp(s):
    """Rows from the bottom or the top, one to four bytes a pixel."""
    height, width, channels = s.int(1, 5), s.int(1, 5), s.pick(1, 3, 4)
    stride = (width * channels + 3) // 4 * 4
    offset = 54 + (1024 if channels == 1 else 0)
    head = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", offset + stride * height, 0, 0, offset, 40,
                       width, s.pick(1, -1) * height, 1, 8 * channels, 0, stride * height, 0, 0,
                       256 if channels == 1 else 0, 0)
    return head + b"\0" * (offset - 54) + s.bytes(stride * height)


def gif(s):
    """A few frames of one colour each, written out by hand: every code is a clear and a pixel."""
    width, height = s.int(1, 4), s.int(1, 4)
    data = struct.pack("<6sHHBBB", b"GIF89a", width, height, 0x91, 0, 0) + bytes(
        s.int(0, 255) for _ in range(12))
    for _ in range(s.int(1, 3)):
        codes = [c for _ in range(width * height) for c in (4, s.int(0, 3))] + [5]
        bits = sum(code << (3 * i) for i, code in enumerate(codes))
        packed_codes = bits.to_bytes((3 * len(codes) + 7) // 8, "little")
        data += struct.pack("<BHHHHBB", 0x2C, 0, 0, width, height, 0, 2)
        for at in range(0, len(packed_codes), 255):
            part = packed_codes[at:at + 255]
            data += bytes([len(part)]) + part
        data += b"\0"
    return data + b";"


def contents(s, *kinds):
    """A file of one of the kinds, or, now and then, something else or a part of it."""
    kind = s.pick(*kinds)
    data = gif(s) if kind == "gif" else packed(s, kind)
    odd = s.rng.random()
    if odd < 0.04:
        data = data[:len(data) // 2]
    elif odd < 0.08:
        data = s.pick(b"", b"text", b"\x89PNG\r\n", data[:12])
    return np.array(data, object)


def decode(*kinds, **more):
    return lambda s: {"contents": contents(s, *kinds), **{k: v(s) for k, v in more.items()}}


def channels(*choices):
    return lambda s: s.pick(*choices)


def there_and_back(s):
    """PNG keeps every pixel: what is packed here is unpacked to the same."""
    image = pixels(s, s.int(1, 4)).astype(s.type.as_numpy_dtype)
    given = tf.compat.v1.placeholder(s.type, image.shape)
    data = tf.raw_ops.EncodePng(image=given, compression=s.int(-1, 9))
    back = tf.raw_ops.DecodePng(contents=data, dtype=s.type)
    return [Step([back], {given: image})]


def jpeg_there_and_back(s):
    """Packed by each with its own JPEG library: the same size, whatever the pixels."""
    image = pixels(s, 3)
    given = tf.compat.v1.placeholder(tf.uint8, image.shape)
    data = (tf.raw_ops.EncodeJpegVariableQuality(images=given, quality=s.int(1, 100)) if s.flag()
            else tf.raw_ops.EncodeJpeg(image=given, format=s.pick("", "rgb"),
                                       density_unit=s.pick("in", "cm"), progressive=s.flag()))
    shape = tf.raw_ops.ExtractJpegShape(contents=data)
    back = tf.raw_ops.DecodeJpeg(contents=data)
    return [Step([shape, back], {given: image}, vague=[back])]


ROWS = [
    Row("DecodePng", "uint8 uint16", decode("png", channels=channels(0, 1, 2, 3, 4),
                                            dtype=lambda s: s.type)),
    Row("DecodeBmp", "uint8", decode("bmp", channels=channels(0, 1, 3, 4))),
    Row("DecodeGif", "uint8", decode("gif")),
    Row("DecodeImage", "uint8 uint16 float32",
        decode("png", "bmp", "bmp", "gif", channels=channels(0, 0, 1, 3, 4), dtype=lambda s: s.type,
               expand_animations=lambda s: s.flag()), "round"),
    Row("DecodeJpeg", "uint8", decode("jpeg", channels=channels(0, 1, 3), ratio=channels(1, 1, 2, 4, 8),
                                      dct_method=channels("", "INTEGER_ACCURATE")), "jpeg"),
    Row("ExtractJpegShape", "uint8",
        decode("jpeg", output_type=lambda s: tf.as_dtype(s.index_type()))),
    Story("PngThereAndBack", "EncodePng", there_and_back, "uint8 uint16"),
    Story("JpegThereAndBack", "EncodeJpeg EncodeJpegVariableQuality", jpeg_there_and_back, "uint8"),
]
