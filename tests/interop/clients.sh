#!/bin/bash
# clients.sh PYTHON BUILD [--mixed] [SCRIPT...] - programs of TensorFlow's clients against our servers.
#
# Those in ../shared (or $TRAINYARD_SHARED) and in tests/interop/clients; --mixed: also clusters of TensorFlow's
# servers and ours, both ways round.  The last line says how many programs passed.  The output of all servers is
# kept in $LOGS, if that is given.
set -u
python=$1 build=$(realpath "$2") shared=${TRAINYARD_SHARED:-../shared}/tf-clients
shift 2
if [ ! -d "$shared" ]; then
    echo "skip clients: TensorFlow's client programs are not here ($shared)"
    exit 0
fi
command="$build/trainyard-task --insecure --cluster {cluster} --job {job} --task {index}"
# A path for both: client.py lies beside the programs in shared.
exec "$python" "$shared/run.py" --scripts-dir "$shared" --scripts-dir tests/interop/clients --timeout "${SECONDS_EACH:-240}" \
    --server-cmd "$command" ${LOGS:+--logs "$LOGS"} "$@"
