internal import CNetwatchNetlink

/// One message in a received datagram. Valid only as long as the buffer.
struct NetlinkMessage {
    let header: UnsafeMutablePointer<nlmsghdr>

    var type: UInt16 { header.pointee.nlmsg_type }
    var flags: UInt16 { header.pointee.nlmsg_flags }
    var sequenceNumber: UInt32 { header.pointee.nlmsg_seq }

    /// The bytes after the netlink header. Their length was checked against that of the datagram.
    var payload: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: nlmsg_data(header), count: Int(nlmsg_datalen(header)))
    }

    /// Returns the family's own header at the start of the payload; `nil` if the payload is shorter.
    func familyHeader<Header: BitwiseCopyable>(_: Header.Type) -> Header? {
        guard payload.count >= MemoryLayout<Header>.size else { return nil }
        return payload.loadUnaligned(as: Header.self)
    }

    /// Returns the attributes after the family's own header.
    func attributes<Header: BitwiseCopyable>(after _: Header.Type) -> NetlinkAttributes {
        let offset = netlinkAligned(MemoryLayout<Header>.size)
        return NetlinkAttributes(UnsafeRawBufferPointer(rebasing: payload.dropFirst(offset)))
    }
}

/// The messages of one datagram.
struct NetlinkMessages: Sequence, IteratorProtocol {
    private var position: UnsafeMutablePointer<nlmsghdr>?
    private var remaining: CInt

    /// Creates an iterator over a datagram. Its bytes must stay valid and be aligned to 4 while messages are read.
    init(_ datagram: UnsafeMutableRawBufferPointer) {
        position = datagram.baseAddress?.assumingMemoryBound(to: nlmsghdr.self)
        remaining = CInt(datagram.count)
    }

    /// Whether the remaining bytes are not a message, because the lengths in the datagram are wrong.
    var isMalformed: Bool {
        remaining > 0
    }

    mutating func next() -> NetlinkMessage? {
        guard let header = position, nlmsg_ok(header, remaining) != 0 else { return nil }
        position = nlmsg_next(header, &remaining)
        return NetlinkMessage(header: header)
    }
}
