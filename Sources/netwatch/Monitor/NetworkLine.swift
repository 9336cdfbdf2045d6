internal import Foundation
internal import NetwatchService
internal import NetworkReachability

/// A change of an interface or an address: an output line of `netwatch monitor`.
struct NetworkLine: Encodable {
    var v = ControlMessage.version
    /// `interface` or `address`.
    var type: String
    var time: Date
    /// `present` in the initial state, then `added`, `changed` or `removed`.
    var change: String
    var interface: String
    var index: UInt32
    /// The state of an interface: `up`, `noCarrier` or `down`.
    var state: String?
    var address: String?
    var prefixLength: Int?
    /// Whether packets can be sent from the address. False while duplicate address detection is running, and after it
    /// failed.
    var usable: Bool?

    private enum CodingKeys: String, CodingKey {
        case v, type, time, change, interface, index, state, address, prefixLength, usable
    }

    init(_ difference: NetworkDifference, time: Date) {
        self.time = time
        change = difference.change.rawValue
        (interface, index) = (difference.interface.name, difference.interface.index)
        if let address = difference.address {
            type = "address"
            self.address = address.text
            prefixLength = address.prefixLength
            usable = address.isUsable
        } else {
            type = "interface"
            state = LinkState(difference.interface).rawValue
        }
    }

    /// `14:03:49.202  interface  eth0          no carrier`
    var text: String {
        let columns = [LocalTime.format(time), type.padded(to: 9), interface.padded(to: 12), summary]
        return columns.joined(separator: "  ")
    }

    private var summary: String {
        let isGone = change == "removed"
        if let state { return isGone ? "removed" : LinkState(rawValue: state)?.summary ?? state }
        let address = "\(address ?? "")/\(prefixLength ?? 0)"
        return address + (isGone ? "  removed" : usable == false ? "  not usable" : "")
    }
}
