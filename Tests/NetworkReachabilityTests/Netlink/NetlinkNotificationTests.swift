internal import NetwatchEventLoop
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import Testing

@Suite struct NetlinkNotificationTests {
    @Test func `bytes that are not a message are malformed`() {
        #expect(NetlinkNotification.all(in: []).isEmpty)
        #expect(NetlinkNotification.all(in: [1, 2, 3]).map(\.kind) == [.malformed])
        // An RTM_NEWADDR of 20 bytes, which is too short for its `ifaddrmsg`.
        let short: [UInt8] = [20, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0]
        #expect(NetlinkNotification.all(in: short).map(\.kind) == [.malformed])
        // A message of an unhandled type.
        let other: [UInt8] = [16, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        #expect(NetlinkNotification.all(in: other).map(\.kind) == [.other])
        #expect(NetlinkNotification.all(in: other + short).map(\.kind) == [.other, .malformed])
    }

    @Test func `the prefix of a router advertisement contains its interface`() throws {
        // An RTM_NEWPREFIX with a 12-byte `prefixmsg` and the attribute PREFIX_ADDRESS.
        let address = try #require(IPAddress("2001:db8:5::"))
        let message: [UInt8] =
            [48, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] + [10, 0, 0, 0, 7, 0, 0, 0, 3, 64, 3, 0]
            + [20, 0, 1, 0] + address.bytes
        let notification = try #require(NetlinkNotification.all(in: message).first)
        #expect(notification.kind == .prefix)
        #expect(notification.prefix?.description == "2001:db8:5::/64")
        #expect(notification.interface == 7)
    }

    @Test func `an attribute with a wrong length makes the message malformed`() {
        // An RTM_NEWADDR with an 8-byte `ifaddrmsg` and an attribute that claims 200 bytes.
        let lying: [UInt8] =
            [28, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] + [2, 24, 0, 0, 1, 0, 0, 0] + [200, 0, 1, 0]
        #expect(NetlinkNotification.all(in: lying).map(\.kind) == [.malformed])
    }
}

@Suite(.needsNetworkNamespaces)
struct NetlinkNotificationKernelTests {
    /// Runs `ip` commands, and returns the kernel's notifications of them.
    private func notifications(
        of commands: [String],
        in testbed: VethTestbed
    ) throws -> [NetlinkNotification] {
        let near = testbed.near
        return try near.run {
            Result {
                let socket = try NotificationSocket()
                for command in commands { try shell("ip \(command)") }
                var notifications: [NetlinkNotification] = []
                while case .datagram(let bytes)? = try socket.next() {
                    notifications += NetlinkNotification.all(in: bytes)
                }
                return notifications
            }
        }.get()
    }

    @Test func `an address notification contains its prefix and interface`() throws {
        let testbed = try VethTestbed()
        let all = try notifications(
            of: ["addr add 203.0.113.5/28 dev near0", "addr del 203.0.113.5/28 dev near0"],
            in: testbed
        )
        // Only IPv4, because the notification of an IPv6 address of the testbed may also arrive now. The kernel sends
        // it when duplicate address detection has ended.
        let addresses = all.filter { $0.kind == .address && $0.family == 2 }
        #expect(addresses.map(\.change) == [.new, .deleted])
        #expect(addresses.map(\.prefix?.description) == ["203.0.113.5/28", "203.0.113.5/28"])
        let links = testbed.near.run { (try? RequestSocket().links())?.elements }
        let index = links?.first { $0.name == "near0" }?.index
        #expect(index != nil && addresses.map(\.interface) == [index, index])
    }

    /// Returns whether the kernel adds this route by itself for an address. For IPv6 it may do that after the address
    /// has been added.
    private static func isAutomatic(_ route: NetlinkNotification) -> Bool {
        let isLocal = route.table == 255
        return isLocal || ["2001:db8::/64", "fe80::/64", "ff00::/8"].contains(route.prefix?.description)
    }

    @Test func `route notifications contain gateways, types, metrics and next hops`() throws {
        let all = try notifications(
            of: [
                "route add 203.0.113.0/24 via \(VethTestbed.farAddress) metric 7",
                "route add blackhole 198.18.0.0/15 table 300",
                "-6 route add 2001:db8:5::/48 via \(VethTestbed.farIPv6Address)",
                "route add 198.19.0.0/16 nexthop via 192.0.2.3 nexthop via 192.0.2.4",
                "route del 203.0.113.0/24",
            ],
            in: try VethTestbed()
        ).filter { $0.kind == .route && !Self.isAutomatic($0) }
        try #require(all.count == 5)
        #expect(all[0].prefix?.description == "203.0.113.0/24" && all[0].priority == 7)
        #expect(all[0].gateway == IPAddress(VethTestbed.farAddress) && all[0].change == .new)
        #expect(all[1].action == 6 && all[1].table == 300 && all[1].interface == nil)
        #expect(all[2].prefix?.description == "2001:db8:5::/48" && all[2].family == 10)
        #expect(all[3].nextHops.map(\.gateway) == [IPAddress("192.0.2.3"), IPAddress("192.0.2.4")])
        #expect(all[4].change == .deleted && all[4].prefix == all[0].prefix)
    }

    @Test func `notifications of a rule, a next hop object and a link are parsed`() throws {
        let all = try notifications(
            of: [
                "rule add from 203.0.113.0/24 fwmark 5 lookup 300 priority 77",
                "nexthop add id 9 via \(VethTestbed.farAddress) dev near0",
                "link set near0 down",
            ],
            in: try VethTestbed()
        )
        let rule = try #require(all.first { $0.kind == .rule })
        #expect(rule.from?.description == "203.0.113.0/24" && rule.mark == 5)
        #expect(rule.table == 300 && rule.priority == 77 && rule.change == .new)
        let hop = try #require(all.first { $0.kind == .nextHop })
        #expect(hop.nextHopID == 9 && hop.gateway == IPAddress(VethTestbed.farAddress))
        let link = try #require(all.first { $0.kind == .link })
        #expect(link.interfaceName == "near0" && link.operationalState == 2)
        #expect(!all.contains { $0.kind == .malformed })
    }

    @Test func `unread notifications are reported as an overrun`() throws {
        let testbed = try VethTestbed()
        let received = try testbed.near.run {
            Result {
                let socket = try NotificationSocket(receiveBufferSize: 1)
                try shell(
                    "for i in $(seq 50); do ip route add 203.0.113.$i via \(VethTestbed.farAddress); done"
                )
                var received: [NotificationSocket.Received] = []
                while let next = try socket.next() { received.append(next) }
                return received
            }
        }.get()
        #expect(received.contains(.overrun))
    }
}
