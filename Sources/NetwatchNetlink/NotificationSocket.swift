package import NetwatchEventLoop

/// Receives the kernel's notifications as bytes, for those who show or record them.
///
/// Not safe for concurrent use: one thread owns it.
package final class NotificationSocket {
    /// What was received.
    package enum Received: Hashable, Sendable {
        /// A datagram of the kernel: one message or several.
        case datagram([UInt8])
        /// Notifications were lost, because they came faster than they were taken.
        case overrun
    }

    private let handle: NetlinkHandle
    private let buffer: UnsafeMutableRawBufferPointer

    /// Opens a socket in the calling thread's network namespace and joins every group.
    ///
    /// - Parameter receiveBufferSize: The receive buffer to ask for, in bytes. Default 4 MiB, as
    ///   `PathMonitor` asks for.
    /// - Throws: ``SystemError`` of `socket`, `bind`, or of joining a group.
    package init(receiveBufferSize: CInt = 4 * 1024 * 1024) throws(SystemError) {
        handle = try NetlinkHandle.connected()
        handle.setReceiveBuffer(receiveBufferSize)
        for kind in NetlinkEvent.Class.allCases { try handle.join(kind) }
        buffer = .allocate(byteCount: NetlinkHandle.bufferSize, alignment: 8)
    }

    deinit {
        buffer.deallocate()
    }

    /// The descriptor to wait on. An error on it must be received like data.
    package var descriptor: CInt {
        handle.descriptor
    }

    /// Receives what is next without waiting; `nil` when nothing is there. What other processes sent is
    /// passed over.
    ///
    /// - Throws: ``SystemError`` when the socket is unusable.
    package func next() throws(SystemError) -> Received? {
        while true {
            switch handle.receive(into: buffer) {
            case .nothing: return nil
            case .datagram(let count): return .datagram(Array(buffer[..<count]))
            case .foreign: continue
            case .overrun: return .overrun
            case .failed(let errno): throw SystemError(call: "netlink notification", errno: errno)
            }
        }
    }
}
