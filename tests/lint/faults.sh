#!/bin/bash
# faults.sh - each test that docs/reliability.md and docs/security.md name is there: a file, a test file without its
# ending, or a word in one; and says of which faults it is.
missing=0
# look PAGE : reads names
look() {
    local bad=0
    while read -r name; do
        [ -e "$name" ] || [ -e "tests/system/$name.sh" ] || grep -rqF --include=*.c --include=*.sh --include=*.py -- "$name" tests ||
            { echo "$1: there is no test '$name'"; bad=1; }
    done
    return $bad
}
sed -n '/^| [FI][0-9]/s/.*| \([^|]*\) |$/\1/p' docs/reliability.md | grep -o '`[^`]*`' | tr -d '`' | grep -vx 'stop.max_seconds' | sort -u |
    look docs/reliability.md || missing=1
# There names of tests have an underscore, no space, no sign and no capital.
sed -n '/^| [0-9]/s/.*| \([^|]*\) |$/\1/p' docs/security.md | grep -o '`[^`]*`' | tr -d '`' | grep -x '[a-z0-9/]*_[a-z0-9_]*' | sort -u |
    look docs/security.md || missing=1
# Each test of a row F1 to F49 says in its file which rows it is of.
while read -r fault names; do
    for name in $names; do
        if [ -d "$name" ]; then continue; fi
        files=$name
        [ -f "$files" ] || files=tests/system/$name.sh
        [ -f "$files" ] || files=$(grep -rlF --include=*.c --include=*.h --include=*.sh --include=*.py -- "$name" tests)
        grep -qwF -- "$fault" $files || { echo "docs/reliability.md: no file with the test '$name' says $fault"; missing=1; }
    done
done < <(sed -n 's/^| \(F[0-9]*\) .*| \([^|]*\) |$/\1 \2/p' docs/reliability.md | while read -r fault rest; do
    echo "$fault $(grep -o '`[^`]*`' <<<"$rest" | tr -d '`' | grep -vx 'stop.max_seconds' | grep -v ' ' | tr '\n' ' ')"
done)
exit $missing
