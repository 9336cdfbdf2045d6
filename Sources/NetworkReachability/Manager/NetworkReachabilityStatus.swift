extension NetworkReachabilityManager {
    /// The reachability of the host.
    public enum NetworkReachabilityStatus: Hashable, Sendable {
        /// Unknown: the name has not been resolved yet, or netlink is unavailable.
        case unknown
        /// The host is not reachable.
        case notReachable
        /// The host is reachable over this type of connection.
        case reachable(ConnectionType)
    }

    /// The type of connection that carries the packets.
    public enum ConnectionType: Hashable, Sendable {
        /// Ethernet, Wi-Fi, and everything else that is not a mobile network.
        case ethernetOrWiFi
        /// A mobile network, directly or under a tunnel; see ``NetworkPath/medium``.
        case wwan

        /// The Alamofire 5 name of ``wwan``. Not a separate case: use `.wwan` in a `switch`.
        public static var cellular: ConnectionType { .wwan }
    }

    /// The current status. Known immediately for an address; `unknown` for a name until its first lookup has
    /// finished.
    public var networkReachabilityStatus: NetworkReachabilityStatus {
        NetworkReachabilityStatus(pathStatus)
    }

    /// The Alamofire 5 name of ``networkReachabilityStatus``.
    public var status: NetworkReachabilityStatus {
        networkReachabilityStatus
    }

    /// Whether the host is reachable over any type of connection.
    public var isReachable: Bool {
        pathStatus.isReachable
    }

    /// Whether the host is reachable over a mobile network.
    public var isReachableOnWWAN: Bool {
        networkReachabilityStatus == .reachable(.wwan)
    }

    /// The Alamofire 5 name of ``isReachableOnWWAN``.
    public var isReachableOnCellular: Bool {
        isReachableOnWWAN
    }

    /// Whether the host is reachable over Ethernet or Wi-Fi.
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
    /// The connection type for a medium; see ``NetworkInterface/medium``.
    ///
    /// Bluetooth and PPP may lead to a phone, but nothing on this machine shows it.
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
