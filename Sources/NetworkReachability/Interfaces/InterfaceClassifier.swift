internal import NetwatchNetlink

/// Determines the types of interfaces and caches them.
///
/// Uses the same criteria as NetworkManager, in the same order: the link kind, the hardware type (framing), sysfs, and
/// finally the name.
struct InterfaceClassifier: Sendable {
    /// The key of a cached type. It includes the name and the kind, so a link is classified again if one of them
    /// changes.
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

    /// Returns the types of the given links by interface index. Removes all other links from the cache.
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

    /// Returns the type of a link, and whether it is certain enough to be cached.
    ///
    /// A type is uncertain if sysfs was needed but could not be read. The files of a new or just renamed interface may
    /// appear a moment later.
    private func type(of link: Link) -> (InterfaceType, isCertain: Bool) {
        if let type = known[Identity(link)] { return (type, true) }
        if let type = InterfaceType(kindOf: link) ?? InterfaceType(framingOf: link) { return (type, true) }
        let properties = sysfs.properties(of: link)
        return (InterfaceType(link, properties ?? .init()), properties != nil)
    }
}

extension InterfaceType {
    /// Classifies by the link kind (`IFLA_INFO_KIND`); `nil` if the kind is missing or unknown.
    ///
    /// The kind is checked before the framing, because a veth or a bridge has Ethernet framing.
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
            // A port of a switch chip, and a Wi-Fi interface simulated by a driver.
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

    /// Classifies by the hardware type (`ifi_type`); `nil` if several types of interfaces have this hardware type.
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

    /// Classifies by sysfs and the name. The fallback is ``ethernet`` for Ethernet framing, otherwise ``other``.
    fileprivate init(_ link: Link, _ properties: SysfsReader.Properties) {
        if let type = Self.ofDevice(link, properties.deviceType) {
            self = type
        } else if properties.isWireless {
            self = .wifi
        } else if Self.isOutOfTreeModem(link) {
            self = .cellular
        } else {
            let isPlain = link.kind == nil && properties.deviceType == nil
            self = isPlain && link.hardwareType == Framing.ethernet ? .ethernet : .other
        }
    }

    private static func ofDevice(_ link: Link, _ deviceType: String?) -> InterfaceType? {
        switch deviceType {
        case "wlan": .wifi
        case "wwan": .cellular
        // A Bluetooth personal area network has Ethernet framing. IPv6 over Bluetooth Low Energy (RFC 7668) does not.
        case "bluetooth": link.hardwareType == Framing.ethernet ? .bluetooth : .other
        case "gadget", "dsa": .ethernet
        default: nil
        }
    }

    /// Whether the link belongs to a phone modem driver outside the mainline kernel. Only its name identifies it.
    private static func isOutOfTreeModem(_ link: Link) -> Bool {
        let framings = [Framing.ethernet, Framing.rawIP, Framing.qualcommRawIP]
        guard framings.contains(link.hardwareType) else { return false }
        return ["rmnet", "rev_rmnet", "ccmni"].contains { link.name.hasPrefix($0) }
    }
}

/// `ARPHRD_…` values from `<linux/if_arp.h>`, and two numbers used by drivers outside the mainline kernel.
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
