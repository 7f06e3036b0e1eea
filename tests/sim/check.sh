#!/bin/bash
# check.sh - 20 seconds of simulated faults: what `make check` has time for.
exec "${TRAINYARD_BUILD:-build}/sim" --seconds 20
