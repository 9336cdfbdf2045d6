#!/bin/sh
# Creates the network of the reachability benchmarks in the current network namespace, and then runs a command:
# - a veth pair, with both ends in this namespace;
# - a route over this pair to 10.0.0.0/8, which contains the watched hosts;
# - no route to 198.51.100.7, for which the benchmark `edges` adds and deletes one.
#
# Usage, in a separate network namespace: network.sh COMMAND...
set -e
ip link set lo up
ip link add near0 type veth peer name far0
ip link set near0 addrgenmode none
ip link set far0 addrgenmode none
ip addr add 192.0.2.1/24 dev near0
ip link set far0 up
ip link set near0 up
until ip -br link show near0 | grep -q ' UP '; do :; done
ip route add 10.0.0.0/8 via 192.0.2.2
exec "$@"
