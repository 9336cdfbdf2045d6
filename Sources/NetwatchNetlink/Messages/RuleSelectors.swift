internal import CNetwatchNetlink
internal import Glibc

/// Properties of a packet on which a policy rule may depend (ip-rule(8)): those that a lookup needs only if there is
/// such a rule.
package struct RuleSelectors: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The source address of an IPv4 packet (`from`).
    package static let ipv4Source = RuleSelectors(rawValue: 1)
    /// The destination port (`dport`), for either family.
    package static let destinationPort = RuleSelectors(rawValue: 2)

    /// The source address of an IPv6 packet (`from`).
    package static let ipv6Source = RuleSelectors(rawValue: 4)

    package static let all: RuleSelectors = [.ipv4Source, .destinationPort, .ipv6Source]
}

extension RuleSelectors {
    /// Reads the selectors of a rule; `nil` if the message is malformed.
    ///
    /// Does not use libnl, which would allocate an object for each of possibly thousands of rules.
    init?(_ message: NetlinkMessage) {
        guard let header = message.familyHeader(fib_rule_hdr.self) else { return nil }
        self = []
        if header.src_len > 0 { insert(header.family == AF_INET ? .ipv4Source : .ipv6Source) }
        var attributes = message.attributes(after: fib_rule_hdr.self)
        while let attribute = attributes.next() {
            if attribute.type == CInt(FRA_DPORT_RANGE) { insert(.destinationPort) }
        }
        if attributes.isMalformed { return nil }
    }
}
