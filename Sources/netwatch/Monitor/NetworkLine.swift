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

/// A difference between two lists of interfaces that a person can see: of an interface, or of one of its addresses.
struct NetworkDifference: Hashable {
    enum Change: String {
        /// The interface or address existed when the observation began.
        case present
        case added, changed, removed
    }

    let change: Change
    let interface: NetworkInterface
    /// The address; `nil` for a difference of the interface itself.
    var address: NetworkInterface.AssignedAddress?
}

extension [NetworkInterface] {
    /// Returns the differences from an older list. Removed addresses and interfaces come first, then interfaces, then
    /// addresses. Each group is in the order of the list.
    ///
    /// - Parameter old: The older list; `nil` at the beginning, when all interfaces and addresses are present.
    func differences(from old: [NetworkInterface]?) -> [NetworkDifference] {
        let new: NetworkDifference.Change = old == nil ? .present : .added
        let before = (old ?? []).byIndex
        let after = byIndex
        var differences: [NetworkDifference] = []
        for interface in old ?? [] {
            differences += interface.removedAddresses(after[interface.index])
        }
        for interface in old ?? [] where after[interface.index] == nil {
            differences.append(NetworkDifference(change: .removed, interface: interface))
        }
        differences += compactMap { $0.difference(from: before[$0.index], new) }
        differences += flatMap { $0.addressDifferences(from: before[$0.index], new) }
        return differences
    }

    private var byIndex: [UInt32: NetworkInterface] {
        Dictionary(map { ($0.index, $0) }) { _, last in last }
    }
}

extension NetworkInterface {
    /// Returns the differences for the addresses that a newer state of the interface does not have.
    fileprivate func removedAddresses(_ newer: NetworkInterface?) -> [NetworkDifference] {
        sortedAddresses.filter { newer?.address(like: $0) == nil }.map {
            NetworkDifference(change: .removed, interface: self, address: $0)
        }
    }

    fileprivate func difference(
        from old: NetworkInterface?,
        _ new: NetworkDifference.Change
    ) -> NetworkDifference? {
        guard let old else { return NetworkDifference(change: new, interface: self) }
        let isSame = name == old.name && isUp == old.isUp && hasCarrier == old.hasCarrier
        return isSame ? nil : NetworkDifference(change: .changed, interface: self)
    }

    fileprivate func addressDifferences(
        from old: NetworkInterface?,
        _ new: NetworkDifference.Change
    ) -> [NetworkDifference] {
        sortedAddresses.compactMap { address in
            let before = old?.address(like: address)
            if before == address { return nil }
            return NetworkDifference(
                change: before == nil ? new : .changed,
                interface: self,
                address: address
            )
        }
    }

    /// Returns the address of this state that differs from another one at most in its usability.
    private func address(like other: AssignedAddress) -> AssignedAddress? {
        assignedAddresses.first { $0.address == other.address && $0.prefixLength == other.prefixLength }
    }
}
