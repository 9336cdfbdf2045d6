internal import CNetwatchNetlink
internal import NetwatchEventLoop

/// An attribute of a netlink message: its type without the nesting flags, and the bytes of its value.
struct NetlinkAttribute {
    let type: CInt
    let bytes: UnsafeRawBufferPointer

    /// The value as a 32-bit number in host byte order; `nil` if the attribute is shorter.
    var number: UInt32? {
        bytes.count >= 4 ? bytes.loadUnaligned(as: UInt32.self) : nil
    }

    /// The value as text. It ends at the first zero byte, if there is one.
    var text: String {
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// The gateway's address in an `RTA_GATEWAY` or `RTA_VIA` attribute; `nil` for other types. The 16-bit address
    /// family at the start of an `RTA_VIA` value is left out.
    var gateway: NetlinkAttribute? {
        switch type {
        case CInt(RTA_GATEWAY.rawValue): self
        case CInt(RTA_VIA.rawValue):
            NetlinkAttribute(type: type, bytes: UnsafeRawBufferPointer(rebasing: bytes.dropFirst(2)))
        default: nil
        }
    }

    /// Reads the `struct rtnexthop` entries of an `RTA_MULTIPATH` attribute. Stops at the first invalid length.
    ///
    /// Each entry contains its own length. The next one begins at a multiple of 4 bytes.
    func nextHops<NextHop>(_ read: (rtnexthop, NetlinkAttributes) -> NextHop) -> [NextHop] {
        let size = MemoryLayout<rtnexthop>.size
        var rest = bytes[...]
        var hops: [NextHop] = []
        while rest.count >= size {
            let entry = UnsafeRawBufferPointer(rebasing: rest).loadUnaligned(as: rtnexthop.self)
            let length = Int(entry.rtnh_len)
            guard length >= size, length <= rest.count else { break }
            let attributes = UnsafeRawBufferPointer(rebasing: rest.prefix(length).dropFirst(size))
            hops.append(read(entry, NetlinkAttributes(attributes)))
            rest = rest.dropFirst(netlinkAligned(length))
        }
        return hops
    }

    /// Returns the value as an address; `nil` if it has neither 4 nor 16 bytes.
    ///
    /// - Parameter zone: The interface index for a link-local address. Default 0: none.
    func address(zone: UInt32 = 0) -> IPAddress? {
        let address = IPAddress(raw: bytes)
        return address?.isLinkLocal == true ? address?.inZone(zone) : address
    }
}

/// The attributes in a sequence of bytes. libnl checks their lengths.
struct NetlinkAttributes: Sequence, IteratorProtocol {
    private var position: UnsafeMutablePointer<nlattr>?
    private var remaining: CInt

    init(_ bytes: UnsafeRawBufferPointer) {
        position = UnsafeMutableRawPointer(mutating: bytes.baseAddress)?.assumingMemoryBound(to: nlattr.self)
        remaining = CInt(bytes.count)
    }

    /// Whether the sequence ended before the last byte, because the remaining bytes are not an attribute.
    var isMalformed: Bool {
        remaining > 0
    }

    mutating func next() -> NetlinkAttribute? {
        guard let attribute = position, nla_ok(attribute, remaining) != 0 else { return nil }
        position = nla_next(attribute, &remaining)
        let bytes = UnsafeRawBufferPointer(start: nla_data(attribute), count: Int(nla_len(attribute)))
        return NetlinkAttribute(type: nla_type(attribute), bytes: bytes)
    }
}

/// Returns a length rounded up to the alignment of messages and attributes, which is 4 (`NLMSG_ALIGNTO`, `NLA_ALIGNTO`,
/// `RTNH_ALIGNTO`).
func netlinkAligned(_ length: Int) -> Int {
    (length + 3) & ~3
}
