extension NetworkReachabilityManager {
    /// The reachability of the target: one host or the network in general.
    public enum NetworkReachabilityStatus: Hashable, Sendable {
        /// The reachability is unknown, for example because the name has not been resolved yet, or because netlink is
        /// unavailable. ``PathStatus/reason`` contains the reason.
        case unknown
        /// The target is not reachable.
        case notReachable
        /// The target is reachable over this type of connection.
        case reachable(ConnectionType)
    }

    /// The type of connection that carries the packets.
    public enum ConnectionType: Hashable, Sendable {
        /// Ethernet, Wi-Fi, and everything else that is not a mobile network.
        case ethernetOrWiFi
        /// A mobile network, directly or under a tunnel; see ``NetworkPath/medium``.
        case wwan

        /// The same value as ``wwan``, under its name in Alamofire 5. In a `switch`, use `.wwan`.
        public static var cellular: ConnectionType { .wwan }
    }

    /// The current status. For a name other than `localhost` it is `unknown` until the first lookup has finished.
    public var networkReachabilityStatus: NetworkReachabilityStatus {
        NetworkReachabilityStatus(pathStatus)
    }

    /// The same as ``networkReachabilityStatus``, under its name in Alamofire 5.
    public var status: NetworkReachabilityStatus {
        networkReachabilityStatus
    }

    /// Whether the target is reachable over any type of connection.
    public var isReachable: Bool {
        pathStatus.isReachable
    }

    /// Whether the target is reachable over a mobile network.
    public var isReachableOnWWAN: Bool {
        networkReachabilityStatus == .reachable(.wwan)
    }

    /// The same as ``isReachableOnWWAN``, under its name in Alamofire 5.
    public var isReachableOnCellular: Bool {
        isReachableOnWWAN
    }

    /// Whether the target is reachable over a connection that is not a mobile network.
    public var isReachableOnEthernetOrWiFi: Bool {
        networkReachabilityStatus == .reachable(.ethernetOrWiFi)
    }
}

extension NetworkReachabilityManager.NetworkReachabilityStatus {
    init(_ status: PathStatus) {
        switch status.verdict {
        case .unknown: self = .unknown
        case .notReachable: self = .notReachable
        case .reachable(let path): self = .reachable(.init(medium: path.medium))
        }
    }
}

extension NetworkReachabilityManager.ConnectionType {
    /// Creates the connection type for a medium; see ``NetworkInterface/medium``.
    ///
    /// Bluetooth and PPP may also lead to a mobile network. They count as `ethernetOrWiFi`, because nothing on this
    /// machine shows where they lead.
    init(medium: InterfaceType) {
        self = medium == .cellular ? .wwan : .ethernetOrWiFi
    }
}

extension NetworkReachabilityManager.NetworkReachabilityStatus: CustomStringConvertible {
    /// A human-readable description of the status.
    public var description: String {
        switch self {
        case .unknown: "unknown"
        case .notReachable: "not reachable"
        case .reachable(.ethernetOrWiFi): "reachable over Ethernet or Wi-Fi"
        case .reachable(.wwan): "reachable over a mobile network"
        }
    }
}
