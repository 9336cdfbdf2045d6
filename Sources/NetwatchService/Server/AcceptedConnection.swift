internal import Glibc
internal import NetwatchEventLoop

/// A connection that the listener has accepted, and that no part of the server owns yet.
struct AcceptedConnection: Sendable {
    /// The descriptor, which is non-blocking and close-on-exec.
    let descriptor: CInt
    /// The process at the other end; `nil` for a TCP connection.
    let peer: PeerCredentials?
    /// Whether the descriptor is one of the last, which connections must leave free (``DescriptorSupply``).
    let isReserved: Bool

    /// Reads the credentials of the peer. Closes the descriptor if that fails.
    ///
    /// - Parameter isLocal: Whether the connection is one of a unix socket.
    init(_ descriptor: CInt, isLocal: Bool) throws(SystemError) {
        do throws(SystemError) {
            peer = isLocal ? try PeerCredentials(ofSocket: descriptor) : nil
        } catch {
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        isReserved = DescriptorSupply.isReserved(descriptor)
    }
}
