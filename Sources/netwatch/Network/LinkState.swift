internal import NetwatchEventLoop
internal import NetworkReachability

/// The state of an interface.
enum LinkState: String {
    case up, noCarrier, down

    init(_ interface: NetworkInterface) {
        self = interface.hasCarrier ? .up : interface.isUp ? .noCarrier : .down
    }

    var summary: String {
        self == .noCarrier ? "no carrier" : rawValue
    }
}

extension NetworkInterface {
    /// The addresses in a fixed order: IPv4 before IPv6, then by their bytes.
    var sortedAddresses: [AssignedAddress] {
        assignedAddresses.sorted { left, right in
            let (left, right) = (left.address.bytes, right.address.bytes)
            if left.count != right.count { return left.count < right.count }
            return left.lexicographicallyPrecedes(right)
        }
    }
}

extension NetworkInterface.AssignedAddress {
    /// The address without its zone, because the line already names the interface.
    var text: String {
        IPAddress(bytes: address.bytes)?.description ?? ""
    }
}
