internal import CNetwatchNetlink

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
