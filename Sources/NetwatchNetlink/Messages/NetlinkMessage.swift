internal import CNetwatchNetlink
internal import Glibc
internal import NetwatchEventLoop

/// A message in a received datagram. It is valid as long as the datagram's buffer.
struct NetlinkMessage {
    let header: UnsafeMutablePointer<nlmsghdr>

    var type: UInt16 { header.pointee.nlmsg_type }
    var flags: UInt16 { header.pointee.nlmsg_flags }
    var sequenceNumber: UInt32 { header.pointee.nlmsg_seq }

    /// The bytes after the netlink header. Their number was checked against the length of the datagram.
    var payload: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: nlmsg_data(header), count: Int(nlmsg_datalen(header)))
    }

    /// Returns the header of the message type at the start of the payload, such as `rtmsg`. Returns `nil` if the
    /// payload is shorter.
    func familyHeader<Header: BitwiseCopyable>(_: Header.Type) -> Header? {
        guard payload.count >= MemoryLayout<Header>.size else { return nil }
        return payload.loadUnaligned(as: Header.self)
    }

    /// Returns the attributes after the header of the message type.
    func attributes<Header: BitwiseCopyable>(after _: Header.Type) -> NetlinkAttributes {
        let offset = netlinkAligned(MemoryLayout<Header>.size)
        return NetlinkAttributes(UnsafeRawBufferPointer(rebasing: payload.dropFirst(offset)))
    }
}

/// The messages of one datagram.
struct NetlinkMessages: Sequence, IteratorProtocol {
    private var position: UnsafeMutablePointer<nlmsghdr>?
    private var remaining: CInt

    /// Creates an iterator over a datagram. The bytes of the datagram must stay valid while messages are read, and must
    /// be aligned to 4 bytes.
    init(_ datagram: UnsafeMutableRawBufferPointer) {
        position = datagram.baseAddress?.assumingMemoryBound(to: nlmsghdr.self)
        remaining = CInt(datagram.count)
    }

    /// Whether the sequence ended before the last byte of the datagram, because a length in the datagram is wrong.
    var isMalformed: Bool {
        remaining > 0
    }

    mutating func next() -> NetlinkMessage? {
        guard let header = position, nlmsg_ok(header, remaining) != 0 else { return nil }
        position = nlmsg_next(header, &remaining)
        return NetlinkMessage(header: header)
    }
}

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

/// An owner of a message to the kernel while the message is built and sent.
struct NetlinkRequest: ~Copyable {
    let pointer: OpaquePointer

    /// Creates a message with its header. Attributes can be added.
    ///
    /// - Parameters:
    ///   - type: The message type, such as `RTM_GETROUTE` or `RTM_GETLINK`.
    ///   - flags: `NLM_F_DUMP` or 0. libnl adds `NLM_F_REQUEST` when it sends the message.
    ///   - header: The header of the message type, such as `rtmsg` or `ifinfomsg`.
    /// - Throws: ``SystemError`` with `ENOMEM`, or with `EMSGSIZE` if the message is full.
    static func message(
        type: CInt,
        flags: CInt = 0,
        header: some BitwiseCopyable
    ) throws(SystemError) -> NetlinkRequest {
        guard let pointer = nlmsg_alloc_simple(type, flags) else {
            throw SystemError(call: "nlmsg_alloc_simple", errno: ENOMEM)
        }
        let request = NetlinkRequest(owning: pointer)
        var header = header
        // 4 is NLMSG_ALIGNTO.
        let result = nlmsg_append(pointer, &header, MemoryLayout.size(ofValue: header), 4)
        guard result == 0 else { throw full }
        return request
    }

    private init(owning pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        nlmsg_free(pointer)
    }

    var sequenceNumber: UInt32 {
        nlmsg_hdr(pointer).pointee.nlmsg_seq
    }

    func put(_ attribute: rtattr_type_t, _ value: UInt32) throws(SystemError) {
        try put(CInt(attribute.rawValue), value)
    }

    func put(_ attribute: CInt, _ value: UInt32) throws(SystemError) {
        guard nla_put_u32(pointer, attribute, value) == 0 else { throw Self.full }
    }

    func put(_ attribute: rtattr_type_t, _ bytes: [UInt8]) throws(SystemError) {
        guard nla_put(pointer, CInt(attribute.rawValue), CInt(bytes.count), bytes) == 0 else {
            throw Self.full
        }
    }

    /// The error for a message that is full. A message has room for one page, which no request here exceeds.
    private static var full: SystemError { SystemError(call: "netlink message", errno: EMSGSIZE) }
}
