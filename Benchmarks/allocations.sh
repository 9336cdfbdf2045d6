#!/usr/bin/env bash
# Prints the allocations, the context switches and the system calls per request of netwatch's clients, of the floor and
# of async-http-client. `scripts/bench` runs it within `web.sh`.
#
# Usage: allocations.sh FLOORS BENCHMARK PEERS
#     FLOORS     the directory of the compiled allocations.so and transfers
#     BENCHMARK  the path of ClientBenchmark
#     PEERS      the directory of AsyncHTTPClientPeer, which may be missing
set -euo pipefail
floors=$1 benchmark=$2 peers=$3
url=http://127.0.0.1/small
clients=(floor engine session await async-http-client)
# The maximum number of allocations per request of a session.
aim=80

# The program that counts system calls: perf(1), which hardly slows the measured program, or strace(1).
counter=
! strace -f -c -o /dev/null true 2>/dev/null || counter=strace
! perf stat -e raw_syscalls:sys_enter -o /dev/null true 2>/dev/null || counter=perf

# run COMMAND...: runs a command and sets `output`. Exits if the command fails.
run() {
    output=$("$@") || {
        echo "error: failed: $*" >&2
        exit 1
    }
}

# figure NAME: prints a figure from `output`.
figure() {
    awk -v name="$1" '$1 == name { print $2; found = 1 } END { exit !found }' <<<"$output" || {
        echo "error: no figure $1 in: $output" >&2
        exit 1
    }
}

# count_calls COMMAND...: sets `calls` to the number of system calls of a command, and `output`.
count_calls() {
    local counts=$floors/calls
    case $counter in
    perf)
        run perf stat -x ' ' -e raw_syscalls:sys_enter -o "$counts" "$@"
        calls=$(awk '/raw_syscalls:sys_enter/ { print $1 }' "$counts")
        ;;
    strace)
        run strace -f -c -U calls,name -o "$counts" "$@"
        calls=$(awk '$2 == "total" { print $1 }' "$counts")
        ;;
    esac
}

# select_client CLIENT: sets `command` to the measurement of a client. Fails if its program is missing.
select_client() {
    case $1 in
    floor) command=("$floors/transfers" requests) ;;
    engine) command=("$benchmark" measure requests transport) ;;
    session) command=("$benchmark" measure requests session) ;;
    await) command=("$benchmark" measure requests awaiting) ;;
    async-http-client) command=("$peers/AsyncHTTPClientPeer" requests) ;;
    esac
    [ -x "${command[0]}" ]
}

# measure IN_FLIGHT: appends a cell for each client to `allocations`, `switches` and `system_calls`, and sets `verdict`.
measure() {
    allocations=() switches=() system_calls=() verdict=
    for client in "${clients[@]}"; do
        select_client "$client" || {
            allocations+=(missing) switches+=(missing) system_calls+=(missing)
            continue
        }
        command+=("$1" 1 "$url")
        run env LD_PRELOAD="$floors/allocations.so" "${command[@]}"
        value=$(figure allocations)
        allocations+=("$(printf %.1f "$value")")
        [ "$client" != session ] || ! awk "BEGIN { exit !($value > $aim) }" || verdict='  MISSED'
        value=$(figure switches)
        switches+=("$(printf %.2f "$value")")
        if [ -z "$counter" ]; then
            system_calls+=('not available')
            continue
        fi
        count_calls "${command[@]}"
        value=$(figure requests)
        system_calls+=("$(awk "BEGIN { printf \"%.1f\", $calls / $value }")")
    done
}

# row CELL...: prints a row of the table.
row() { printf '%-10s %-18s %14s %14s %14s %14s %18s  %s\n' "$@"; }

row 'in flight' 'per request' "${clients[@]}" 'aim for a session'
for requests in 1 64 512; do
    measure $requests
    row $requests allocations "${allocations[@]}" "≤ $aim$verdict"
    row '' 'context switches' "${switches[@]}" ''
    row '' 'system calls' "${system_calls[@]}" ''
done
if [ -n "$counter" ]; then
    echo "system calls were counted with $counter, from the start of each program until its end"
else
    echo 'system calls were not counted: neither perf(1) nor strace(1) works here'
fi
