#!/bin/bash
# words.sh - what may not stand in the tree: things left for later, and functions that cannot be used
# safely.  Prints file:line for each; exits 1 if there is any.
files=$(git ls-files -- '*.c' '*.h' '*.cu' '*.ts' '*.tsx' '*.sh' '*.py' '*.md' '*.proto' '*.sql' Makefile |
    grep -v -e '^tests/lint/' -e '^LICENSE')
[ -n "$files" ] || { echo "words: git lists no files here"; exit 1; }
found=0
match() { # pattern, files pattern, why
    local rows
    rows=$(grep -nEH "$1" $(echo "$files" | grep -E "$2") /dev/null) || return
    echo "$rows" | sed "s|\$|    <- $3|"
    found=1
}
match '\b(TODO|FIXME|XXX|HACK)\b' '.' 'do it, or take it out'
match '\b(sqlite3_exec)\(.*%' '\.c$' 'SQL takes bound values'
match '\bsystem\(|\bpopen\(' '\.(c|h)$' 'no shell'
match '__attribute__\(\(constructor' '\.(c|h)$' 'tables, not constructors'
match 'innerHTML' '\.tsx?$' 'text goes in as text'
exit $found
