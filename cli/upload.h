/*
 * upload.h - the files of a job, from this machine to the server.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct client;
struct error;

/*
 * A spec whose "files" is a list names files of this machine, by their paths from `folder`:
 * uploads those that the server does not have, and puts in its place what the server takes, an
 * object of paths and SHA-256s.  A folder stands for all the files in it.  Other specs stay as
 * they are.
 */
bool upload_files(struct client *client, json_t *spec, const char *folder,
                  struct error *err) CHECKED;
