/* text_pb.h - GraphDefs in text form, against the same ones in binary. */
#pragma once

#include "base/base.h"

struct error;

/* The text file, read, is the binary one; and the binary one, printed, is the text. */
bool text_check_pair(const char *folder, const char *binary, const char *text,
                     struct error *err) CHECKED;

/* The file, read and printed, is the file. */
bool text_check_print(const char *folder, const char *text, struct error *err) CHECKED;
