#!/bin/sh
# Runs a command with a new directory as its last argument, and counts the command's disk syncs.
#
# Usage: store.sh FLOORS SCRATCH COMMAND...
#     TEMPLATE=DIRECTORY         the directory is a copy of this one; default: empty
#     STORE=DIRECTORY            uses this directory instead of a new one
#     FLOORS_RECORDING=FILE      records the command's SQLite statements in this file
#     FLOORS_SYNC_NANOSECONDS=N  makes each fsync(2) take this time instead of the disk's
set -e
floors=$1
scratch=$2
shift 2
run=$(mktemp -d "$scratch/run.XXXXXX")
trap 'rm -rf "$run"' EXIT
if [ -n "$TEMPLATE" ]; then
    cp -a "$TEMPLATE" "$run/queue"
    # Otherwise the kernel would write the copy while the command's writes are timed.
    find "$run/queue" -type f -exec sync {} +
else
    mkdir -m 700 "$run/queue"
fi
export FLOORS_SYNCS="$run/syncs"
preloaded=$floors/syncs.so
[ -z "$FLOORS_RECORDING" ] || preloaded=$preloaded:$floors/record.so
env LD_PRELOAD="$preloaded" "$@" "${STORE:-$run/queue}"
