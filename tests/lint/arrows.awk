# arrows.awk - which folder may include which; run over every .c and .h file.
#
# A row: folder of the file = what it may include, longest folder first.

BEGIN {
    allow["base"] = "base/"
    allow["proto"] = "base/ proto/"
    allow["db"] = "base/ db/"
    allow["runtime"] = "base/ proto/ runtime/"
    allow["kernels"] = "base/ proto/ runtime/ kernels/"
    allow["capi"] = "base/ proto/ runtime/ kernels/ capi/"
    allow["task"] = "base/ proto/ runtime/ kernels/ task/"
    allow["scheduler"] = "base/ proto/ db/ scheduler/"
    allow["scheduler/agent"] = "base/ proto/ scheduler/agent/"
    allow["scheduler/shim"] = "base/base.h base/failpoint.h scheduler/shim/"
    allow["server"] = "base/ proto/ db/ scheduler/ server/ runtime/spec runtime/graph runtime/op runtime/model runtime/dataset/feeds runtime/attr runtime/shape runtime/tensor runtime/dtype"
    allow["cli"] = "base/ proto/ db/ server/ scheduler/agent/ cli/ runtime/spec"
    allow["tests"] = "base/ proto/ db/ scheduler/ server/ cli/ runtime/ kernels/ capi/ task/ tests/"
    allow["examples"] = "runtime/trainyard.h"
}

FNR == 1 {
    folder = FILENAME
    sub(/\/[^\/]*$/, "", folder)
    while (!(folder in allow) && sub(/\/[^\/]*$/, "", folder))
        ;
}

/^#include "/ {
    split($2, quoted, "\"")
    path = quoted[2]
    if (path ~ /\.pb-c\.h$/) {
        if (FILENAME !~ /_pb\.[ch]$/ && FILENAME !~ /^tests\//)
            bad(path, "generated code is for *_pb.c")
        next
    }
    if (path ~ /internal\.h$/ && path !~ "^" folder "/" && folder != "tests")
        bad(path, "another folder's internal.h")
    if (path ~ /\.inc$/ || FILENAME ~ /\.cu$/)
        next
    n = split(allow[folder], prefix, " ")
    for (i = 1; i <= n; i++)
        if (index(path, prefix[i]) == 1)
            next
    bad(path, folder "/ may include only " allow[folder])
}

/^#include <nghttp2/ {
    if (FILENAME !~ /^proto\/(rpc_)?http2/ && FILENAME !~ /^tests\//)
        bad($2, "only proto/http2* and rpc_http2* see nghttp2")
}

function bad(what, why) {
    printf "%s:%d: includes %s: %s\n", FILENAME, FNR, what, why
    failed = 1
}

END { exit failed }
