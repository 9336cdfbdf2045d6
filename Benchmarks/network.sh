#!/bin/sh
# Runs a command in the current network namespace, after adding a veth pair with both ends in it and a route to
# 10.0.0.0/8 over it. The watched hosts are in that network. 198.51.100.7 has no route.
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
