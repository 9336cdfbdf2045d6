package import NetwatchEventLoop

/// The interfaces and their addresses at one moment.
package struct NetlinkSnapshot: Hashable, Sendable {
    /// By index, which is an interface's identity.
    package var links: [UInt32: Link]
    package var addresses: Set<InterfaceAddress>

    package init(links: [Link] = [], addresses: [InterfaceAddress] = []) {
        self.links = Dictionary(links.map { ($0.index, $0) }) { _, last in last }
        self.addresses = Set(addresses)
    }

    /// Asks the kernel for both.
    ///
    /// - Throws: ``SystemError`` when it does not answer.
    package init(reading socket: RequestSocket) throws(SystemError) {
        self.init(links: try socket.links().elements, addresses: try socket.addresses().elements)
    }

    /// What became of an interface or an address.
    package enum Change: String, Hashable, Sendable {
        /// It was there when the looking began.
        case present
        case added, changed, removed
    }

    /// One difference between two moments.
    package enum Difference: Hashable, Sendable {
        case link(Change, Link)
        /// An address, with the link it is on.
        case address(Change, InterfaceAddress, Link?)
    }

    /// Everything, as differences from nothing.
    package var everything: [Difference] {
        differences(from: NetlinkSnapshot(), new: .present)
    }

    /// What is other than it was: what is gone first, then links before their addresses, in the order of
    /// the interfaces' indexes.
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
    /// Whether a person would be told the same: flags that say nothing about use come and go.
    fileprivate func isSame(as other: Link) -> Bool {
        name == other.name && isUp == other.isUp && hasCarrier == other.hasCarrier
    }
}

extension InterfaceAddress {
    /// The address without its flags, which come and go.
    fileprivate var identity: InterfaceAddress {
        InterfaceAddress(interface: interface, address: address, prefixLength: prefixLength, flags: 0)
    }

    /// By interface, IPv4 first, then as the bytes are.
    package static func isBefore(_ left: InterfaceAddress, _ right: InterfaceAddress) -> Bool {
        if left.interface != right.interface { return left.interface < right.interface }
        if left.address.bytes.count != right.address.bytes.count {
            return left.address.bytes.count < right.address.bytes.count
        }
        return left.address.bytes.lexicographicallyPrecedes(right.address.bytes)
    }
}
