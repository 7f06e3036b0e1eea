/*
 * list.h - What reads and writes bytes: strings, files, readers, parsing, images, summaries.
 *
 * Each has one kernel, which is its own reference; a row each, grouped by file.
 */
#pragma once

/* clang-format off */

#define KERNELS_OF_IO(X) \
    KERNELS_OF_READERS(X) \
    KERNELS_PRINT(X) \
    KERNELS_IMAGE_FILES(X) \
    KERNELS_PARSE(X) \
    KERNELS_STRINGS(X) \
    KERNELS_SUMMARIES(X)

/* print.c */
#define KERNELS_PRINT(X) X(print) X(print_v2)

/* string_*.c */
#define KERNELS_STRINGS(X) \
    X(add_string) X(string_join) X(sharded_filename) X(string_strip) X(string_upper) \
    X(string_lower) X(string_length) X(string_to_hash_bucket_fast) X(string_to_hash_bucket) \
    X(string_to_hash_bucket_strong) X(fingerprint) X(as_string) X(string_to_number) \
    X(string_split) X(string_split_v2) X(substr) X(reduce_join) X(unsorted_segment_join) \
    X(encode_base64) X(decode_base64) X(regex_full_match) X(static_regex_full_match) \
    X(regex_replace) X(static_regex_replace) X(string_n_grams) X(string_format) \
    X(unicode_decode) X(unicode_decode_with_offsets) X(unicode_transcode) \
    X(unicode_encode) X(unicode_script)

/* summary_*.c */
#define KERNELS_SUMMARIES(X) \
    X(scalar_summary) X(merge_summary) X(histogram_summary) X(tensor_summary) \
    X(tensor_summary_v2) X(image_summary) X(audio_summary) X(audio_summary_v2) \
    X(summary_writer) X(create_summary_file_writer) X(flush_summary_writer) \
    X(close_summary_writer) X(write_summary) X(write_raw_proto_summary) \
    X(write_scalar_summary) X(write_histogram_summary) X(write_image_summary) \
    X(write_audio_summary) X(write_graph_summary) X(import_event)

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

#define KERNELS_OF_READERS(X) \
    /* reader_ops.c */ \
    X(text_line_reader) X(text_line_reader_v2) X(fixed_length_record_reader) \
    X(fixed_length_record_reader_v2) X(tf_record_reader) X(tf_record_reader_v2) \
    X(whole_file_reader) X(whole_file_reader_v2) X(identity_reader) \
    X(identity_reader_v2) X(reader_read) X(reader_read_v2) X(reader_read_up_to) \
    X(reader_read_up_to_v2) X(reader_reset) X(reader_reset_v2) X(reader_serialize_state) \
    X(reader_serialize_state_v2) X(reader_restore_state) X(reader_restore_state_v2) \
    X(reader_num_records_produced) X(reader_num_records_produced_v2) \
    X(reader_num_work_units_completed) X(reader_num_work_units_completed_v2)
