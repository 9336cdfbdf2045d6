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
