public import NetwatchEventLoop
package import NetwatchNetlink

extension PathMonitor {
    /// The settings of a monitor. The defaults suit all programs that watch their own network namespace.
    ///
    /// A value outside the range of its property is replaced with the nearest value in the range.
    public struct Configuration: Sendable {
        /// The path of the network namespace to watch (`/run/netns/NAME`, `/proc/PID/ns/net`). Default: `nil`, the
        /// namespace of the thread that creates the monitor.
        ///
        /// Requires `CAP_SYS_ADMIN` over that namespace and over the program's own. Only the monitor's sockets and its
        /// DNS queries use the watched namespace. The following belong to the process as usual:
        /// - the files that contain the addresses of name servers;
        /// - the interface names and indexes in the zones of addresses;
        /// - callbacks, and threads that they start.
        public var networkNamespace: String?
        /// The time for which a loss of reachability is held back. A path that returns within this time is not reported
        /// as lost. Default: 30 ms. Range: 0 to 250 ms.
        public var settle = defaultSettle {
            didSet { settle = min(max(settle, .zero), .milliseconds(250)) }
        }
        /// The delay between the last kernel notification and another lookup of all addresses. Default: 150 ms.
        /// Minimum: 10 ms.
        ///
        /// The lookup after the delay is needed because the kernel announces some changes before it makes them. While
        /// notifications keep arriving, this lookup runs after at most ten times the delay.
        public var confirmDelay: Duration = .milliseconds(150) {
            didSet { confirmDelay = max(confirmDelay, .milliseconds(10)) }
        }
        /// The time without any kernel notification after which all addresses are looked up, because the kernel makes
        /// some changes without one. The lookup is repeated at this interval. Default: 60 s. Minimum: 100 ms.
        public var auditInterval: Duration = .seconds(60) {
            didSet { auditInterval = max(auditInterval, .milliseconds(100)) }
        }
        /// The delay before the netlink sockets are reopened after a failure. Default: 5 s. Minimum: 10 ms.
        ///
        /// While netlink is unavailable, this is also the interval at which each path is looked up with `connect(2)`.
        public var reconnectInterval: Duration = .seconds(5) {
            didSet { reconnectInterval = max(reconnectInterval, .milliseconds(10)) }
        }
        /// The interval at which the addresses of a watched name are refreshed, ±10 %. Default: 30 s. Range: 1 s to
        /// 1 h.
        ///
        /// Lookups are more frequent in these cases:
        /// - After a change of the network or of the resolver configuration, a lookup follows immediately.
        /// - After a failed lookup, the next one follows after 1 s. This delay doubles with each further failure, up to
        ///   this interval.
        /// - While the addresses are unreachable, lookups follow after 5 s, 5 s, 10 s, 20 s, and then at this interval.
        ///
        /// A change of a name's DNS records appears in its status within twice this interval, unless
        /// ``nameLookupsPerSecond`` is too low.
        public var nameRefreshInterval: Duration = .seconds(30) {
            didSet { nameRefreshInterval = min(max(nameRefreshInterval, .seconds(1)), .seconds(3600)) }
        }
        /// The maximum number of lookups per second, for all watched names together. Default: 6, which are 12 queries
        /// (A and AAAA). Range: 1 to 10,000.
        ///
        /// After a pause, at least 20 lookups may start at once, and in addition 100 first lookups of names, one of which
        /// becomes possible again every 2 s. First lookups and refreshes take turns. A new name whose lookup cannot start
        /// within 2 s gets its first status at once: `unknown`, or `notReachable` if this machine has no network.
        ///
        /// The defaults suffice for 180 names (6 per second for 30 s, see ``nameRefreshInterval``). With more names, each
        /// name is refreshed less often.
        public var nameLookupsPerSecond = 6 {
            didSet { nameLookupsPerSecond = min(max(nameLookupsPerSecond, 1), 10_000) }
        }
        /// The requested size of the notification socket's receive buffer, in bytes. Default: 4 MiB, enough for 5,000
        /// pending route notifications.
        ///
        /// Without `CAP_NET_ADMIN`, the kernel grants at most `net.core.rmem_max`.
        public var receiveBufferSize = Int(EventSocket.defaultReceiveBufferSize)

        /// Whether the kernel drops notifications of routes that cover no watched address. Default: `true`.
        ///
        /// This saves a wake-up for each dropped notification. It does not change any status.
        public var filtersRoutes = true
        /// The addresses that decide about ``PathTarget/general``: it is reachable if one of them is. Nothing is sent
        /// to them.
        ///
        /// Default: the IPv4 and IPv6 addresses of two root name servers (`a` and `k` in the IANA root hints), because
        /// these hardly ever change and are routed everywhere. An empty list selects the default.
        public var generalAddresses = rootNameServers {
            didSet { if generalAddresses.isEmpty { generalAddresses = Self.rootNameServers } }
        }
        /// The descriptor of a netlink socket (`NETLINK_ROUTE`) on which the monitor receives notifications. Default:
        /// `nil`, the monitor opens a socket itself.
        ///
        /// A privileged process can open the socket with a larger receive buffer, for example systemd with
        /// `ListenNetlink=` and `ReceiveBuffer=`. The socket must belong to the watched namespace. The monitor
        /// duplicates the descriptor, so the caller still owns the original.
        public var inheritedSocket: CInt?

        /// The paths of the resolver's configuration files, which tests replace.
        package var resolverFiles = ResolverConfigurationWatch.systemPaths
        /// The clock and timers, which tests replace.
        package var clock = MonitorClock.system
        /// The faults that tests inject. Default: none.
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

/// Faults that tests inject into a monitor, to prove that the tests would find such faults.
package struct MonitorFaults: Sendable {
    /// The classes of notifications that the monitor does not receive.
    package var ignoredClasses: Set<NetlinkEvent.Class> = []
    /// Whether lookups right after a notification have no effect. This simulates a kernel that announces each change
    /// before it makes the change. The confirmation, which follows later, is not affected.
    package var answersLate = false
    /// The address families for which routes are looked up without the source address that the kernel chooses.
    package var ignoredSources: Set<IPAddress.Family> = []
    /// A closure that is called before `connect(2)` for an IPv6 address, and returns the error with which this fails.
    package var sourceFailure: (@Sendable () -> SystemError?)?
    /// Whether the monitor looks up all addresses without ports.
    package var ignoresPorts = false
    /// Whether the monitor looks up no address because of the lifetime of a route.
    package var ignoresLifetimes = false
    /// A closure that is called for each batch of notifications, and returns the batch to process instead.
    package var interceptor: (@Sendable (EventSocket.Batch) -> EventSocket.Batch)?

    package init() {}

    var receivedClasses: Set<NetlinkEvent.Class> {
        Set(NetlinkEvent.Class.allCases).subtracting(ignoredClasses)
    }
}
