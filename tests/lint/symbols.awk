# symbols.awk - every exported name begins with its file's noun; reads "path symbol" lines.
#
# graph.c and graph_pb.c export graph_*; optimise_fuse.c exports optimise_*; four folders lead
# with themselves: db_, op_, kernel_, layer_.  The C API, capi/, exports ty_* (and capi_* inside).

{
    path = $1
    symbol = $2
    n = split(path, part, "/")
    stem = part[n]
    sub(/\.o$/, "", stem)
    if (symbol == "main" || symbol == "fail" || symbol == "fail_null")
        next
    if (path ~ /\/db\// && symbol ~ /^db_/)
        next
    if (path ~ /\/runtime\/ops\// && symbol ~ /^op_/)
        next
    if (path ~ /\/runtime\/model\/layers\// && symbol ~ /^layer_/)
        next
    if (path ~ /\/kernels\// && symbol ~ /^kernels?_/)
        next
    if (path ~ /\/capi\// && symbol ~ /^(ty|capi)_/)
        next
    noun = stem
    do {
        if (index(symbol, noun "_") == 1 || symbol == noun)
            next
    } while (sub(/_[^_]*$/, "", noun))
    printf "%s exports %s: a name in %s.c begins with %s_\n", path, symbol, stem, stem
    failed = 1
}

END { exit failed }
