#!/bin/sh
# Runs a command on a directory of its own, which becomes its last argument, and counts what it asks of the disk.
#
# Usage: store.sh FLOORS SCRATCH COMMAND...
#     TEMPLATE=DIRECTORY         the directory is a copy of this one; else it is empty
#     STORE=DIRECTORY            it is this one itself
#     FLOORS_RECORDING=FILE      what the command asks of SQLite is recorded there
#     FLOORS_SYNC_NANOSECONDS=N  each fsync(2) takes so long, in place of what the disk would
set -e
floors=$1
scratch=$2
shift 2
run=$(mktemp -d "$scratch/run.XXXXXX")
trap 'rm -rf "$run"' EXIT
if [ -n "$TEMPLATE" ]; then
    cp -a "$TEMPLATE" "$run/queue"
    # Else the copy would be written while the command's own writes are timed.
    find "$run/queue" -type f -exec sync {} +
else
    mkdir -m 700 "$run/queue"
fi
export FLOORS_SYNCS="$run/syncs"
preloaded=$floors/syncs.so
[ -z "$FLOORS_RECORDING" ] || preloaded=$preloaded:$floors/record.so
env LD_PRELOAD="$preloaded" "$@" "${STORE:-$run/queue}"
