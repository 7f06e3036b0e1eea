#!/bin/bash
# tunnel.sh PYTHON - TensorFlow in PYTHON drives the tasks of a cluster through a tunnel.
. "$(dirname "$(realpath "$0")")/../system/lib.sh"
serve yard --cpus 4
TRAINYARD_DIR=$dir TF_CPP_MIN_LOG_LEVEL=3 timeout 300 "$1" "$here/../interop/tunnel.py" "$trainyard" "$here/../../README.md" 2>"$work/python.log" || failed=1
