/*
 * list.h - What reads and writes bytes: strings, files, readers, parsing, images, summaries.
 *
 * Each has one kernel, which is its own reference; a row each, grouped by file.
 */
#pragma once

/* clang-format off */

#define KERNELS_OF_IO(X) \
    KERNELS_IMAGE_FILES(X) \
    KERNELS_PARSE(X)

/* parse_*.c */
#define KERNELS_PARSE(X) \
    X(parse_example) X(parse_example_v2) X(parse_single_example) X(parse_sequence_example) \
    X(parse_sequence_example_v2) X(parse_single_sequence_example) X(decode_raw) \
    X(decode_padded_raw) X(decode_csv) X(parse_tensor) X(serialize_tensor) \
    X(decode_compressed) X(decode_json_example)

/* image_*.c */
#define KERNELS_IMAGE_FILES(X) \
    X(decode_png) X(decode_jpeg) X(decode_bmp) X(decode_gif) X(decode_image) \
    X(extract_jpeg_shape) X(encode_png) X(encode_jpeg) X(encode_jpeg_variable_quality)
