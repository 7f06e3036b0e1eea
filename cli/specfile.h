/*
 * specfile.h - the job spec that a word of the command line names.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct error;

/*
 * The spec in a file ("-": stdin), owned; a word that is no file is the name of an example,
 * which the server knows.  A graph that it names as a file is put into it.  Fails with
 * NOT_FOUND, and INVALID with file, line and column, and as spec_embed() does.
 */
json_t *specfile_read(const char *word, struct error *err) CHECKED;
