extension NetworkReachabilityManager {
    /// What is known of the host.
    public enum NetworkReachabilityStatus: Hashable, Sendable {
        /// It could not be told: the name has not been resolved yet, or the kernel could not be asked.
        case unknown
        /// There is no way to the host.
        case notReachable
        /// There is a way to the host, over this kind of connection.
        case reachable(ConnectionType)
    }

    /// The kind of interface the way leads over.
    public enum ConnectionType: Hashable, Sendable {
        /// Ethernet, Wi-Fi, and everything that is no mobile network.
        case ethernetOrWiFi
        /// A mobile network, be it under a tunnel; see ``NetworkPath/medium``.
        case wwan

        /// ``wwan``, as Alamofire 5 calls it. Not a case of its own: a `switch` needs `.wwan`.
        public static var cellular: ConnectionType { .wwan }
    }

    /// The status now. Known at once for an address; `unknown` for a name until its first lookup ended.
    public var networkReachabilityStatus: NetworkReachabilityStatus {
        NetworkReachabilityStatus(pathStatus)
    }

    /// ``networkReachabilityStatus``, as Alamofire 5 calls it.
    public var status: NetworkReachabilityStatus {
        networkReachabilityStatus
    }

    /// Whether there is a way to the host, over whatever kind of connection.
    public var isReachable: Bool {
        pathStatus.isReachable
    }

    /// Whether there is a way to the host over a mobile network.
    public var isReachableOnWWAN: Bool {
        networkReachabilityStatus == .reachable(.wwan)
    }

    /// ``isReachableOnWWAN``, as Alamofire 5 calls it.
    public var isReachableOnCellular: Bool {
        isReachableOnWWAN
    }

    /// Whether there is a way to the host over Ethernet or Wi-Fi.
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

extension NetworkReachabilityManager.NetworkReachabilityStatus: CustomStringConvertible {
    /// The status in words for a person.
    public var description: String {
        switch self {
        case .unknown: "unknown"
        case .notReachable: "not reachable"
        case .reachable(.ethernetOrWiFi): "reachable over Ethernet or Wi-Fi"
        case .reachable(.wwan): "reachable over a mobile network"
        }
    }
}
