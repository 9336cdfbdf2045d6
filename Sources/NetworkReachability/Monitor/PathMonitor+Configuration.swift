public import NetwatchEventLoop
internal import NetwatchNetlink

extension PathMonitor {
    /// The settings of a monitor. The defaults suit everything but tests.
    public struct Configuration: Sendable {
        /// The path of the network namespace to watch (`/run/netns/NAME`, `/proc/PID/ns/net`). Default `nil`: the
        /// namespace of the thread that creates the monitor.
        ///
        /// Requires `CAP_SYS_ADMIN` over that namespace and over the program's own. Name servers are queried from the
        /// watched namespace, but their addresses are read from the files of the process. Zones are looked up in the
        /// namespace of the process. Callbacks, and threads started by them, stay in the program's namespace.
        public var networkNamespace: String?
        /// How long a loss of reachability is held back. Default 30 ms, range 0 to 250 ms. Here and below, values
        /// outside the range are clamped.
        public var settle = defaultSettle {
            didSet { settle = min(max(settle, .zero), .milliseconds(250)) }
        }
        /// How long after the last notification everything is looked up again, because the kernel announces some
        /// changes before it makes them. While notifications keep arriving, this happens at the latest ten times this
        /// long after the first. Default 150 ms, minimum 10 ms.
        public var confirmDelay: Duration = .milliseconds(150) {
            didSet { confirmDelay = max(confirmDelay, .milliseconds(10)) }
        }
        /// How often everything is looked up without any notification. Default 60 s, minimum 100 ms.
        public var auditInterval: Duration = .seconds(60) {
            didSet { auditInterval = max(auditInterval, .milliseconds(100)) }
        }
        /// How long after a failure the netlink sockets are reopened. While they are missing, also how often each
        /// path is looked up by other means. Default 5 s, minimum 10 ms.
        public var reconnectInterval: Duration = .seconds(5) {
            didSet { reconnectInterval = max(reconnectInterval, .milliseconds(10)) }
        }
        /// How often the addresses of a watched name are refreshed, ±10 %, if nothing else causes a lookup. Default
        /// 30 s, range 1 s to 1 h.
        ///
        /// A name whose addresses are unreachable is looked up after 5 s, 5 s, 10 s, 20 s, and then at this interval.
        /// A failed lookup is retried after 1 s, with a delay that doubles up to this interval. A change of the
        /// network or of the resolver configuration causes an immediate lookup.
        ///
        /// The status of a name follows its records within twice this interval, unless ``nameLookupsPerSecond`` is
        /// too low.
        public var nameRefreshInterval: Duration = .seconds(30) {
            didSet { nameRefreshInterval = min(max(nameRefreshInterval, .seconds(1)), .seconds(3600)) }
        }
        /// The maximum number of lookups per second that refresh watched names, for all names together. First lookups
        /// do not count. Default 20, range 1 to 10,000.
        ///
        /// With more names than this and ``nameRefreshInterval`` allow (600 by default), each name is refreshed less
        /// often.
        public var nameLookupsPerSecond = 20 {
            didSet { nameLookupsPerSecond = min(max(nameLookupsPerSecond, 1), 10_000) }
        }
        /// The requested receive buffer in bytes. Without `CAP_NET_ADMIN`, the kernel grants at most
        /// `net.core.rmem_max`. Default 4 MiB, enough for 5,000 pending route notifications.
        public var receiveBufferSize = Int(EventSocket.defaultReceiveBufferSize)

        /// Whether the kernel suppresses notifications of routes that cover no watched address, which saves a wake-up
        /// for each. Default `true`. The statuses are the same either way.
        public var filtersRoutes = true
        /// The addresses that decide about ``PathTarget/general``. Nothing is sent to them. Default: the IPv4 and
        /// IPv6 addresses of two root name servers (`a` and `k` in the IANA root hints), which are as stable and as
        /// widely routed as any. An empty list selects the default.
        public var generalAddresses = rootNameServers {
            didSet { if generalAddresses.isEmpty { generalAddresses = Self.rootNameServers } }
        }
        /// The descriptor of a netlink socket (`NETLINK_ROUTE`) to listen on. Default `nil`: the monitor opens one.
        ///
        /// A more privileged process can open it with a larger buffer, for example systemd with `ListenNetlink=` and
        /// `ReceiveBuffer=`. It must belong to the watched namespace. The monitor uses a duplicate.
        public var inheritedSocket: CInt?

        /// For tests.
        package var resolverFiles = ResolverConfigurationWatch.systemPaths
        /// For tests.
        package var clock = MonitorClock.system
        /// Faults to inject, for tests.
        package var faults = MonitorFaults()

        /// The default of ``settle``.
        package static let defaultSettle: Duration = .milliseconds(30)

        private static let rootNameServers = [
            IPAddress("198.41.0.4")!, IPAddress("2001:503:ba3e::2:30")!,
            IPAddress("193.0.14.129")!, IPAddress("2001:7fd::1")!,
        ]

        /// Creates a configuration with the default values.
        public init() {}
    }
}
