package import NetwatchEventLoop

/// A netlink socket that receives the kernel's notifications as bytes, to display or record them.
///
/// It must be used by one thread only.
package final class NotificationSocket {
    /// A datagram, or the loss of datagrams.
    package enum Received: Hashable, Sendable {
        /// A datagram from the kernel with one or more messages.
        case datagram([UInt8])
        /// The kernel dropped notifications, because they arrived faster than they were read.
        case overrun
    }

    private let handle: NetlinkHandle
    // Callers wait for the descriptor, so a received datagram must not remain in the buffer.
    private let buffer = DatagramBuffer(capacity: 1)

    /// Opens a socket in the network namespace of the calling thread and joins all groups.
    ///
    /// - Parameter receiveBufferSize: The requested receive buffer in bytes. Default 4 MiB.
    /// - Throws: ``SystemError`` of `socket`, `bind`, or of joining a group.
    package init(receiveBufferSize: CInt = EventSocket.defaultReceiveBufferSize) throws(SystemError) {
        handle = try NetlinkHandle.connected()
        handle.setReceiveBuffer(receiveBufferSize)
        for kind in NetlinkEvent.Class.allCases { try handle.join(kind) }
    }

    /// The descriptor to wait for. Call ``next()`` when it is readable and when it reports an error.
    package var descriptor: CInt {
        handle.descriptor
    }

    /// Receives the next datagram or loss, without blocking. Returns `nil` if nothing is pending. Datagrams from other
    /// processes are skipped.
    ///
    /// - Throws: ``SystemError`` if the socket is unusable.
    package func next() throws(SystemError) -> Received? {
        while true {
            switch handle.receive(into: buffer) {
            case .nothing: return nil
            case .datagram(let datagram): return .datagram(Array(datagram))
            case .foreign: continue
            case .overrun: return .overrun
            case .failed(let errno): throw SystemError(call: "netlink notification", errno: errno)
            }
        }
    }
}
