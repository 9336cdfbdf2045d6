internal import CNetwatchNetlink

/// One message inside a received datagram. Valid only while its buffer is.
struct NetlinkMessage {
    let header: UnsafeMutablePointer<nlmsghdr>

    var type: UInt16 { header.pointee.nlmsg_type }
    var flags: UInt16 { header.pointee.nlmsg_flags }
    var sequenceNumber: UInt32 { header.pointee.nlmsg_seq }

    /// Everything after the netlink header; its length was checked against the datagram's.
    var payload: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: nlmsg_data(header), count: Int(nlmsg_datalen(header)))
    }

    /// The family's own header at the start of the payload, or `nil` when the payload is shorter.
    func familyHeader<Header: BitwiseCopyable>(_: Header.Type) -> Header? {
        guard payload.count >= MemoryLayout<Header>.size else { return nil }
        return payload.loadUnaligned(as: Header.self)
    }

    /// The attributes behind the family's own header.
    func attributes<Header: BitwiseCopyable>(after _: Header.Type) -> NetlinkAttributes {
        // 4 is NLMSG_ALIGNTO.
        let offset = (MemoryLayout<Header>.size + 3) & ~3
        return NetlinkAttributes(UnsafeRawBufferPointer(rebasing: payload.dropFirst(offset)))
    }
}

/// The messages of one datagram.
struct NetlinkMessages: Sequence, IteratorProtocol {
    private var position: UnsafeMutablePointer<nlmsghdr>?
    private var remaining: CInt

    /// Reads a datagram; its bytes must stay valid, and be aligned to 4, while messages are read.
    init(_ datagram: UnsafeMutableRawBufferPointer) {
        position = datagram.baseAddress?.assumingMemoryBound(to: nlmsghdr.self)
        remaining = CInt(datagram.count)
    }

    /// Whether bytes are left that are no message: the datagram lies about its lengths.
    var isMalformed: Bool {
        remaining > 0
    }

    mutating func next() -> NetlinkMessage? {
        guard let header = position, nlmsg_ok(header, remaining) != 0 else { return nil }
        position = nlmsg_next(header, &remaining)
        return NetlinkMessage(header: header)
    }
}
