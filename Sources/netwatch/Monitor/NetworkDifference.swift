internal import NetworkReachability

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
