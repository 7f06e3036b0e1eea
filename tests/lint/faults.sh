#!/bin/bash
# faults.sh - each test that docs/reliability.md names is there: a file, a test file without its ending, or a word in one.
missing=0
for name in $(sed -n '/^| F[0-9]/s/.*| \([^|]*\) |$/\1/p' docs/reliability.md | grep -o '`[^`]*`' | tr -d '`' | sort -u); do
    [ "$name" != stop.max_seconds ] || continue
    [ -e "$name" ] || [ -e "tests/system/$name.sh" ] || grep -rqF --include=*.c --include=*.sh --include=*.py -- "$name" tests ||
        { echo "docs/reliability.md: there is no test '$name'"; missing=1; }
done
exit $missing
