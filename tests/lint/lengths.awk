# lengths.awk - files and functions that have grown too long.  Limits: .c 600 lines, .h 300, a
# function 110 lines (one screen, 60, is the aim).

FNR == 1 { start = 0; check(); file = FILENAME }
{ lines = FNR }
/^[a-z].*\)$/ && !/;/ { name = $0; start = FNR }
/^}/ {
    if (start && FNR - start > 110) {
        printf "%s:%d: %d lines: %s\n", FILENAME, start, FNR - start, name
        failed = 1
    }
    start = 0
}

function check() {
    limit = file ~ /\.h$/ ? 300 : 600
    if (file && lines > limit) {
        printf "%s: %d lines, at most %d\n", file, lines, limit
        failed = 1
    }
}

END { check(); exit failed }
