# The network changes whose notifications scripts/record-corpus records for the fuzzer. They run in a separate network
# namespace.
ip link add near0 type veth peer name far0
ip link add bridge0 type bridge
ip link set far0 master bridge0
ip link add near1 type veth peer name far1
ip addr add 192.0.2.1/24 dev near0
ip addr add 2001:db8::1/64 dev near0
ip addr add 10.1.0.1 peer 10.1.0.2 dev near1
for link in lo near0 far0 bridge0 near1 far1; do ip link set $link up; done
ip route add default via 192.0.2.2
ip route add blackhole 203.0.113.1
ip route add unreachable 203.0.113.2
ip route add prohibit 203.0.113.3
ip route add throw 203.0.113.4
ip route add 10.2.0.0/16 nexthop via 192.0.2.2 weight 2 nexthop dev near1
ip nexthop add id 1 via 192.0.2.3 dev near0
ip nexthop add id 2 dev near1
ip nexthop add id 3 group 1/2
ip route add 198.51.100.0/24 nhid 3
ip route add 192.0.2.128/25 via inet6 2001:db8::9 dev near0 table 100
ip rule add fwmark 7 table 100
ip rule del fwmark 7 table 100
ip -6 route add default via 2001:db8::2
ip -6 route add blackhole 2001:db8:1::/48
ip -6 route add 2001:db8:2::/48 via 2001:db8::2 expires 600
ip -6 route add 2001:db8:3::/48 nexthop via 2001:db8::2 nexthop via 2001:db8::3
ip -6 route add 2001:db8:4::/48 via fe80::9 dev near1 metric 7 mtu 1400
ip -6 rule add from 2001:db8::1 table 100
sysctl -q -w net.ipv4.conf.near0.ignore_routes_with_linkdown=1
ip link set far1 down
ip link set far0 nomaster
ip link set near0 name cable0
ip link set cable0 alias "a cable"
ip nexthop del id 1
ip addr del 10.1.0.1 peer 10.1.0.2 dev near1
ip route del throw 203.0.113.4
ip link del near1
