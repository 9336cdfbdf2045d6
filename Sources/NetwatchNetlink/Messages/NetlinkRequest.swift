internal import CNetwatchNetlink
internal import Glibc
internal import NetwatchEventLoop

/// Owns a message to the kernel while it is built and sent.
struct NetlinkRequest: ~Copyable {
    let pointer: OpaquePointer

    /// Starts a message.
    ///
    /// - Parameters:
    ///   - type: `RTM_GETROUTE`, `RTM_GETLINK`, …
    ///   - flags: `NLM_F_DUMP` or 0; `NLM_F_REQUEST` is added on sending.
    ///   - header: The family's own header: `rtmsg`, `ifinfomsg`, …
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

    /// The error for a full message. A message has the size of a page, which no request here exceeds.
    private static var full: SystemError { SystemError(call: "netlink message", errno: EMSGSIZE) }
}
