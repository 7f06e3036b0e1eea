#!/bin/bash
# check.sh - 20 seconds of simulated faults: what `make check` has time for; a quarter of it with SQLite.
"${TRAINYARD_BUILD:-build}/sim" --seconds 15 || exit 1
exec "${TRAINYARD_BUILD:-build}/sim" --seconds 5 --sqlite
