internal import NetwatchEventLoop

/// The interfaces and their addresses at one moment.
package struct NetlinkSnapshot: Hashable, Sendable {
    /// The interfaces by their index.
    package var links: [UInt32: Link]
    package var addresses: Set<InterfaceAddress>

    package init(links: [Link] = [], addresses: [InterfaceAddress] = []) {
        self.links = Dictionary(links.map { ($0.index, $0) }) { _, last in last }
        self.addresses = Set(addresses)
    }

    /// The kind of change of an interface or address.
    package enum Change: String, Hashable, Sendable {
        /// The interface or address existed when the observation began.
        case present
        case added, changed, removed
    }

    /// A difference between two snapshots.
    package enum Difference: Hashable, Sendable {
        case link(Change, Link)
        /// A change of an address. The link is the address's interface; `nil` if it is not known.
        case address(Change, InterfaceAddress, Link?)
    }

    /// All links and addresses, as differences from an empty snapshot.
    package var everything: [Difference] {
        differences(from: NetlinkSnapshot(), new: .present)
    }

    /// Returns the differences from an older snapshot. Removed addresses and links come first, then links, then
    /// addresses. Each group is sorted by interface index.
    package func differences(from old: NetlinkSnapshot) -> [Difference] {
        differences(from: old, new: .added)
    }

    private func differences(from old: NetlinkSnapshot, new: Change) -> [Difference] {
        removed(from: old) + linkDifferences(from: old, new: new) + addressDifferences(from: old, new: new)
    }

    private func removed(from old: NetlinkSnapshot) -> [Difference] {
        let remaining = Set(addresses.map(\.identity))
        let addresses = old.addresses.filter { !remaining.contains($0.identity) }
        let links = old.links.values.filter { self.links[$0.index] == nil }
        return addresses.sorted(by: InterfaceAddress.isBefore).map { address in
            Difference.address(.removed, address, old.links[address.interface])
        } + links.sorted { $0.index < $1.index }.map { Difference.link(.removed, $0) }
    }

    private func linkDifferences(from old: NetlinkSnapshot, new: Change) -> [Difference] {
        links.values.sorted { $0.index < $1.index }.compactMap { link in
            guard let before = old.links[link.index] else { return .link(new, link) }
            return link.isSame(as: before) ? nil : .link(.changed, link)
        }
    }

    private func addressDifferences(from old: NetlinkSnapshot, new: Change) -> [Difference] {
        let before = Dictionary(old.addresses.map { ($0.identity, $0) }) { _, last in last }
        return addresses.sorted(by: InterfaceAddress.isBefore).compactMap { address in
            let link = links[address.interface]
            guard let before = before[address.identity] else { return .address(new, address, link) }
            return address.isUsable == before.isUsable ? nil : .address(.changed, address, link)
        }
    }
}

extension Link {
    /// Whether both links are displayed in the same way. Flags that do not affect usability are ignored, because they
    /// change often.
    fileprivate func isSame(as other: Link) -> Bool {
        name == other.name && isUp == other.isUp && hasCarrier == other.hasCarrier
    }
}

extension InterfaceAddress {
    /// The address without its flags. Two values with the same identity are the same address, even if their flags
    /// differ.
    fileprivate var identity: InterfaceAddress {
        InterfaceAddress(interface: interface, address: address, prefixLength: prefixLength, flags: 0)
    }

    /// Returns whether one address comes before another. Addresses are sorted by interface, then IPv4 before IPv6, then
    /// by bytes.
    package static func isBefore(_ left: InterfaceAddress, _ right: InterfaceAddress) -> Bool {
        if left.interface != right.interface { return left.interface < right.interface }
        if left.address.bytes.count != right.address.bytes.count {
            return left.address.bytes.count < right.address.bytes.count
        }
        return left.address.bytes.lexicographicallyPrecedes(right.address.bytes)
    }
}
