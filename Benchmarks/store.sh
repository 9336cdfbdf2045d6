#!/bin/sh
# Runs a command with a new directory as its last argument, and counts the command's disk syncs. Removes the directory
# afterwards.
#
# Usage: store.sh FLOORS SCRATCH COMMAND...
#     FLOORS     the directory of the compiled syncs.so and record.so
#     SCRATCH    the directory in which the new directory is created
#
# Environment variables:
#     TEMPLATE=DIRECTORY         makes the new directory a copy of this one; by default it is empty
#     STORE=DIRECTORY            the directory to use instead of a new one; it is not removed
#     FLOORS_RECORDING=FILE      the file in which to record the command's SQLite statements
#     FLOORS_SYNC_NANOSECONDS=N  replaces each fsync(2) by a pause of this length
set -e
floors=$1
scratch=$2
shift 2
run=$(mktemp -d "$scratch/run.XXXXXX")
trap 'rm -rf "$run"' EXIT
if [ -n "$TEMPLATE" ]; then
    cp -a "$TEMPLATE" "$run/queue"
    # Without the sync, the kernel would write the copy to the disk during the measurement.
    find "$run/queue" -type f -exec sync {} +
else
    mkdir -m 700 "$run/queue"
fi
export FLOORS_SYNCS="$run/syncs"
preloaded=$floors/syncs.so
[ -z "$FLOORS_RECORDING" ] || preloaded=$preloaded:$floors/record.so
env LD_PRELOAD="$preloaded" "$@" "${STORE:-$run/queue}"
