/*
 * assets.h - the files of the page, built into the program.
 */
#pragma once

#include "base/base.h"

struct request;

struct asset {
    const char *path; /* "/main.js" */
    const unsigned char *bytes;
    size_t size;
    const unsigned char *gzip; /* the same compressed */
    size_t gzip_size;
    const char *etag; /* of the contents, quoted */
};

/* The asset at a path, NULL if there is none. */
const struct asset *assets_find(const char *path);

/*
 * Answers a GET with a file of the page; paths that the page itself knows ("/jobs/7") get
 * index.html. False when the path is not the page's (below /api, or looks like a file that does
 * not exist).
 */
bool assets_reply(struct request *req);
