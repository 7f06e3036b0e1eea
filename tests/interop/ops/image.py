"""image.py - images and boxes."""

import numpy as np

from .frame import FLOAT, IMAGE, Row


def suppression(version):
    def make(s):
        count = s.int(0, 7)
        corner = s.values((count, 2), 0, 1).astype(np.float64)
        boxes = np.concatenate([corner, corner + s.values((count, 2), 0.1, 0.6).astype(
            np.float64)], 1).astype(s.type.as_numpy_dtype)
        arguments = {"boxes": boxes, "scores": s.values((count,), 0, 1),
                     "max_output_size": s.scalar(s.int(0, 5)),
                     "iou_threshold": s.values((), 0.2, 0.7)}
        if version == 1:
            arguments["iou_threshold"] = 0.5
        if version >= 3:
            arguments["score_threshold"] = s.values((), 0, 0.5)
        if version == 5:
            arguments["soft_nms_sigma"] = s.values((), 0, 0.5) if s.flag() else s.values(
                (), 0, 0)
        if version >= 4:
            arguments["pad_to_max_output_size"] = s.flag()
        return arguments
    return make


def sample_distorted(version):
    def make(s):
        boxes = np.sort(s.values((1, s.int(0, 3), 2, 2), 0, 1, "float32"), 2).reshape(1, -1, 4)
        arguments = {"image_size": s.ints((3,), 5, 100, s.type),
                     "bounding_boxes": boxes.astype(np.float32), "seed": s.int(1, 99),
                     "seed2": s.int(0, 99), "use_image_if_no_bounding_boxes": True,
                     "area_range": [s.pick(0.05, 0.3), 1.0]}
        cover = s.pick(0.1, 0.5, 0.9)
        arguments["min_object_covered"] = (cover if version == 1
                                           else np.array(cover, np.float32))
        return arguments
    return make


def resize(halves=True):
    def make(s):
        mode = s.int(0, 2 if halves else 1)
        return {"images": s.values((s.int(1, 2), s.int(1, 6), s.int(1, 6), s.int(1, 3)), 0, 99),
                "size": s.ints((2,), 1, 8), "align_corners": mode == 1,
                **({"half_pixel_centers": mode == 2} if halves else {})}
    return make


def crop_and_resize(s):
    batch, boxes = s.int(1, 3), s.int(0, 4)
    return {"image": s.values((batch, s.int(1, 6), s.int(1, 6), s.int(1, 3)), 0, 99),
            "boxes": s.values((boxes, 4), -0.2, 1.2, "float32"),
            "box_ind": s.ints((boxes,), 0, batch - 1), "crop_size": s.ints((2,), 1, 5),
            "method": s.pick("bilinear", "nearest"), "extrapolation_value": s.pick(0.0, 3.5)}


def color(name, low, high):
    return lambda s: {"images": s.values(s.shape(2, 3, 4, 1) + (3,), 0, 1),
                      name: s.values((), low, high, "float32")}


def pixels(s):
    return {"images": s.values(s.shape(0, 3, 4, 1) + (3,), 0, 1)}


def glimpse(s):
    batch, channels = s.int(1, 3), s.int(1, 3)
    image = (batch, s.int(1, 6), s.int(1, 6), channels)
    offsets = s.rng.uniform(-1.5, 1.5, (batch, 2)) * s.pick(1, 1, 4)
    return {"input": s.values(image), "size": s.vector([s.int(0, 7), s.int(0, 7)]),
            "offsets": np.float32(np.round(offsets * 4) / 4 if s.flag() else offsets),
            "centered": s.flag(), "normalized": s.flag(), "uniform_noise": False,
            "noise": s.pick("zero", "zero", "gaussian", "")}


def noisy(arguments):
    """Noise is drawn anew each time, where there is any."""
    return () if arguments["noise"] == "zero" else (0,)


ROWS = [
    Row("ExtractGlimpse", "float32", glimpse, vague=noisy),
    Row("ExtractGlimpseV2", "float32", glimpse, vague=noisy),
    Row("NonMaxSuppression", "float32", suppression(1)),
    *(Row(f"NonMaxSuppressionV{v}", "float32 half", suppression(v), "few")
      for v in (2, 3, 4, 5)),
    Row("SampleDistortedBoundingBox", "int8 int16 int32 int64 uint8", sample_distorted(1), "few"),
    Row("SampleDistortedBoundingBoxV2", "int8 int16 int32 int64 uint8", sample_distorted(2), "few"),
    Row("ResizeBilinear", IMAGE + " bfloat16", resize(), "sum"),
    Row("ResizeBicubic", IMAGE + " bfloat16", resize(), "single"),
    Row("ResizeNearestNeighbor", IMAGE + " bfloat16", resize(), "sum"),
    Row("ResizeArea", IMAGE + " bfloat16", resize(False), "sum"),
    Row("CropAndResize", IMAGE, crop_and_resize, "loose"),
    Row("AdjustContrastv2", "float32", color("contrast_factor", 0, 2), "sum"),
    Row("AdjustHue", "float32", color("delta", -1, 1), "loose"),
    Row("AdjustSaturation", "float32", color("scale", 0, 2), "loose"),
    Row("RGBToHSV", "bfloat16 float32 float64", pixels, "sum"),
    # The gradient's quotients overflow in half, ours and TensorFlow's at different pixels.
    Row("RGBToHSV", "half", pixels, "sum", gradient=False),
    Row("HSVToRGB", FLOAT, pixels, "sum"),
]
