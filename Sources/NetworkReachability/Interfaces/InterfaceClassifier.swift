internal import NetwatchNetlink

/// Tells the types of interfaces, in the order of NetworkManager: what made the interface, its framing,
/// what sysfs says, and at last its name.
struct InterfaceClassifier: Sendable {
    /// What an answer rests on. A link that has another name or another kind is asked about anew.
    private struct Identity: Hashable {
        let index: UInt32
        let name: String
        let kind: String?

        init(_ link: Link) {
            index = link.index
            name = link.name
            kind = link.kind
        }
    }

    private let sysfs: SysfsReader
    private var known: [Identity: InterfaceType] = [:]

    init(sysfs: SysfsReader) {
        self.sysfs = sysfs
    }

    /// The types of all links. Links that are not among them are forgotten.
    mutating func types(of links: [UInt32: Link]) -> [UInt32: InterfaceType] {
        var stillKnown: [Identity: InterfaceType] = [:]
        let types = links.mapValues { link in
            let (type, isCertain) = type(of: link)
            if isCertain { stillKnown[Identity(link)] = type }
            return type
        }
        known = stillKnown
        return types
    }

    /// The type of a link, and whether it may be remembered: an answer for want of sysfs may not, because
    /// the interface may be so new, or just renamed, that sysfs follows in a moment.
    private func type(of link: Link) -> (InterfaceType, isCertain: Bool) {
        if let type = known[Identity(link)] { return (type, true) }
        if let type = InterfaceType(kindOf: link) ?? InterfaceType(framingOf: link) { return (type, true) }
        let evidence = sysfs.evidence(of: link)
        return (InterfaceType(link, evidence ?? .init()), evidence != nil)
    }
}

extension InterfaceType {
    /// Decides by `IFLA_INFO_KIND`. It comes first, since a veth or a bridge has Ethernet's framing.
    fileprivate init?(kindOf link: Link) {
        guard let kind = link.kind, let type = Self.kinds[kind] else { return nil }
        self = type
    }

    private static let kinds: [String: InterfaceType] = {
        let names: [InterfaceType: [String]] = [
            .bridge: ["bridge", "openvswitch"],
            .bond: ["bond", "team"],
            .vlan: ["vlan"],
            .macvlan: ["macvlan", "macvtap", "ipvlan", "ipvtap"],
            .veth: ["veth", "netkit"],
            .cellular: ["wwan", "rmnet"],
            .infiniband: ["ipoib"],
            .pointToPoint: ["ppp"],
            // A port of a switch chip, and a Wi-Fi interface that a driver imitates.
            .ethernet: ["dsa"],
            .wifi: ["virt_wifi"],
            .tunnel: [
                "tun", "wireguard", "ovpn", "ovpn-dco", "xfrm", "vti", "vti6", "ipip", "ip6tnl", "sit", "gre",
                "gretap", "ip6gre", "ip6gretap", "erspan", "ip6erspan", "vxlan", "geneve", "bareudp", "gtp",
                "amt", "pfcp",
            ],
        ]
        return names.reduce(into: [:]) { kinds, entry in
            for name in entry.value { kinds[name] = entry.key }
        }
    }()

    /// Decides by `ifi_type`, where that names one thing only.
    fileprivate init?(framingOf link: Link) {
        switch link.hardwareType {
        case Framing.loopback: self = .loopback
        case Framing.infiniband: self = .infiniband
        case Framing.sit, Framing.tunnel6: self = .tunnel
        case Framing.ppp: self = .pointToPoint
        case Framing.ieee802154, Framing.sixLoWPAN: self = .other
        default: return nil
        }
    }

    /// Decides by what sysfs says, and by what remains when it says nothing.
    fileprivate init(_ link: Link, _ evidence: SysfsReader.Evidence) {
        if let type = Self.ofDevice(link, evidence.deviceType) {
            self = type
        } else if evidence.isWireless {
            self = .wifi
        } else if Self.isForeignModem(link) {
            self = .cellular
        } else {
            let isPlain = link.kind == nil && evidence.deviceType == nil
            self = isPlain && link.hardwareType == Framing.ethernet ? .ethernet : .other
        }
    }

    private static func ofDevice(_ link: Link, _ deviceType: String?) -> InterfaceType? {
        switch deviceType {
        case "wlan": .wifi
        case "wwan": .cellular
        // Without Ethernet's framing it carries IPv6 over low energy radio (RFC 7668), not a network of ours.
        case "bluetooth": link.hardwareType == Framing.ethernet ? .bluetooth : .other
        case "gadget", "dsa": .ethernet
        default: nil
        }
    }

    /// The modem drivers of telephones that never came into the kernel, which only their names betray.
    private static func isForeignModem(_ link: Link) -> Bool {
        let framings = [Framing.ethernet, Framing.rawIP, Framing.qualcommRawIP]
        guard framings.contains(link.hardwareType) else { return false }
        return ["rmnet", "rev_rmnet", "ccmni"].contains { link.name.hasPrefix($0) }
    }
}

/// `ARPHRD_…` of `<linux/if_arp.h>`, and two numbers that drivers outside the kernel use.
private enum Framing {
    static let ethernet = Link.ethernetFraming
    static let infiniband: UInt16 = 32
    static let ppp: UInt16 = 512
    static let rawIP: UInt16 = 519
    static let qualcommRawIP: UInt16 = 530
    static let tunnel6: UInt16 = 769
    static let loopback: UInt16 = 772
    static let sit: UInt16 = 776
    static let ieee802154: UInt16 = 804
    static let sixLoWPAN: UInt16 = 825
}
