@testable internal import NetworkReachability

extension NetworkInterface {
    /// Returns a wired interface that is up.
    static func fake(_ index: UInt32) -> NetworkInterface {
        NetworkInterface(
            index: index,
            name: "eth\(index)",
            type: .ethernet,
            medium: .ethernet,
            isUp: true,
            hasCarrier: true,
            isTunnel: false,
            addresses: [],
            mtu: 1500,
            metered: .unknown
        )
    }
}
