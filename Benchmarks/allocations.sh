#!/bin/sh
# Prints the number of allocations per request of netwatch's clients and of the floor. `scripts/bench` runs it
# within `web.sh`.
#
# Usage: allocations.sh FLOORS BENCHMARK
#     FLOORS     the directory of the compiled allocations.so and transfers
#     BENCHMARK  the path of ClientBenchmark
set -e
floors=$1
benchmark=$2

# count COMMAND...: runs a measurement, and prints its figure `allocations`.
count() {
    env LD_PRELOAD="$floors/allocations.so" "$@" | sed -n 's/^allocations //p'
}

url=http://127.0.0.1/small
printf '%-10s %10s %10s %10s %10s\n' 'in flight' floor engine session await
for requests in 1 64 512; do
    printf '%-10s %10s %10s %10s %10s\n' $requests \
        "$(count "$floors/transfers" requests $requests 1 $url)" \
        "$(count "$benchmark" measure requests transport $requests 1 $url)" \
        "$(count "$benchmark" measure requests session $requests 1 $url)" \
        "$(count "$benchmark" measure requests awaiting $requests 1 $url)"
done
