internal import CNetwatchNetlink
internal import NetwatchEventLoop

/// One attribute: its type without the nesting flags, and its bytes.
struct NetlinkAttribute {
    let type: CInt
    let bytes: UnsafeRawBufferPointer

    /// The value as a 32-bit number in host byte order; `nil` if the attribute is shorter.
    var number: UInt32? {
        bytes.count >= 4 ? bytes.loadUnaligned(as: UInt32.self) : nil
    }

    /// The value as text, up to the terminating zero if there is one.
    var text: String {
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// The address of an `RTA_GATEWAY` or `RTA_VIA` attribute, without the 16-bit family that precedes it in
    /// `RTA_VIA`; `nil` for other types.
    var gateway: NetlinkAttribute? {
        switch type {
        case CInt(RTA_GATEWAY.rawValue): self
        case CInt(RTA_VIA.rawValue):
            NetlinkAttribute(type: type, bytes: UnsafeRawBufferPointer(rebasing: bytes.dropFirst(2)))
        default: nil
        }
    }

    /// Reads the `struct rtnexthop` entries of an `RTA_MULTIPATH` attribute. Each contains its length and is aligned
    /// to 4. Ends at the first invalid length.
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

    /// Returns the value as an address; `nil` if its length is not that of an address.
    func address(zone: UInt32 = 0) -> IPAddress? {
        let address = IPAddress(raw: bytes)
        return address?.isLinkLocal == true ? address?.inZone(zone) : address
    }
}

/// A sequence of attributes. libnl checks the bounds.
struct NetlinkAttributes: Sequence, IteratorProtocol {
    private var position: UnsafeMutablePointer<nlattr>?
    private var remaining: CInt

    init(_ bytes: UnsafeRawBufferPointer) {
        position = UnsafeMutableRawPointer(mutating: bytes.baseAddress)?.assumingMemoryBound(to: nlattr.self)
        remaining = CInt(bytes.count)
    }

    /// Whether the remaining bytes are not an attribute.
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

/// Rounds a length up to the alignment of messages and attributes: 4 (`NLMSG_ALIGNTO`, `NLA_ALIGNTO`, `RTNH_ALIGNTO`).
func netlinkAligned(_ length: Int) -> Int {
    (length + 3) & ~3
}
