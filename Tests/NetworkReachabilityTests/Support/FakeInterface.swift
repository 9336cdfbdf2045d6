@testable internal import NetworkReachability

extension NetworkInterface {
    /// Returns an Ethernet interface with carrier and without addresses, named `eth` with the index.
    static func fake(_ index: UInt32) -> NetworkInterface {
        NetworkInterface(
            index: index,
            name: "eth\(index)",
            type: .ethernet,
            medium: .ethernet,
            isUp: true,
            hasCarrier: true,
            isTunnel: false,
            assignedAddresses: [],
            mtu: 1500,
            metered: .unknown
        )
    }
}
