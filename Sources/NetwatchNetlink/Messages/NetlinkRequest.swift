internal import CNetwatchNetlink
internal import Glibc
internal import NetwatchEventLoop

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
