internal import Glibc
internal import NetwatchEventLoop
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

/// Reads from sysfs the properties of interfaces that netlink does not provide.
///
/// sysfs always shows the network namespace in which it was mounted, even to a thread in another one. So a monitor must
/// use ``none`` if it does not watch the namespace of its process.
struct SysfsReader: Sendable {
    /// The properties of one interface.
    struct Properties: Hashable, Sendable {
        /// The device type that the driver set (`DEVTYPE=` in `uevent`); `nil` if it set none.
        var deviceType: String?
        /// Whether the interface is a Wi-Fi interface: it has an entry `phy80211`. The entry `wireless` is not used,
        /// because only kernels with the old wireless extensions have it.
        var isWireless = false
    }

    /// A reader that returns `nil` for every interface.
    static let none = SysfsReader(root: nil)
    /// The reader of the system's sysfs.
    static let system = SysfsReader(root: "/sys/class/net")

    /// The maximum size of a file in bytes: one page, because no sysfs attribute is longer.
    private static let maxFileSize = 4096

    private let root: String?

    /// - Parameter root: The directory with one subdirectory per interface. With `nil` nothing is read.
    init(root: String?) {
        self.root = root
    }

    /// Returns the properties of a link; `nil` if sysfs does not show this link.
    ///
    /// sysfs finds interfaces by name, and a name can move to another interface. So the properties are returned only
    /// if `uevent` contains the index of the link.
    func properties(of link: Link) -> Properties? {
        guard let root, Self.isInterfaceName(link.name) else { return nil }
        let directory = "\(root)/\(link.name)"
        guard let uevent = Self.contents(of: "\(directory)/uevent").map(Self.values) else { return nil }
        guard uevent["IFINDEX"] == String(link.index) else { return nil }
        let isWireless = access("\(directory)/phy80211", F_OK) == 0
        return Properties(deviceType: uevent["DEVTYPE"], isWireless: isWireless)
    }

    /// Returns whether the kernel would allow this interface name. The rule also keeps the path inside the root.
    private static func isInterfaceName(_ name: String) -> Bool {
        let isShort = (1...InterfaceName.maximumBytes).contains(name.utf8.count)
        let forbidden: Set<Character> = ["/", ":", "\0"]
        let isClean = !name.contains { $0.isWhitespace || forbidden.contains($0) }
        return isShort && isClean && name != "." && name != ".."
    }

    /// Returns the values in a `uevent` file, which has lines of the form `KEY=value`.
    private static func values(_ text: String) -> [Substring: String] {
        let pairs = text.split(separator: "\n").compactMap { line -> (Substring, String)? in
            guard let equals = line.firstIndex(of: "=") else { return nil }
            return (line[..<equals], String(line[line.index(after: equals)...]))
        }
        return Dictionary(pairs) { first, _ in first }
    }

    /// Returns the text of a regular file shorter than ``maxFileSize``; `nil` for any other file. Never blocks.
    private static func contents(of path: String) -> String? {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        guard let number = try? systemCall("open", { open(path, flags) }) else { return nil }
        let file = FileDescriptor(owning: number)
        var status = stat()
        guard fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        var bytes = [UInt8](repeating: 0, count: maxFileSize)
        let count = read(file.rawValue, &bytes, bytes.count)
        guard count >= 0, count < bytes.count else { return nil }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
