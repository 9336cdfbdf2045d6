internal import CNetwatchTestSupport
internal import Glibc
package import NetwatchEventLoop

/// A switch that makes all IPv4 addresses from 128.0.0.0 on unreachable in a namespace, and reachable again.
///
/// It takes microseconds, for tests that change the route thousands of times.
package final class RouteSwitch: Sendable {
    private let socket: FileDescriptor
    private let isOpen = Lock(true)

    /// - Throws: ``SystemError`` of `socket`.
    package init(in namespace: NetworkNamespace) throws(SystemError) {
        let made: Result<CInt, SystemError> = namespace.run {
            Result { () throws(SystemError) in
                try systemCall("socket") {
                    Glibc.socket(AF_INET, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
                }
            }
        }
        socket = FileDescriptor(owning: try made.get())
    }

    /// Makes the addresses reachable or unreachable. Has no effect if they already are.
    ///
    /// - Throws: ``SystemError`` of `ioctl`.
    package func set(isOpen: Bool) throws(SystemError) {
        let descriptor = socket.rawValue
        let error = self.isOpen.withLock { current in
            guard current != isOpen else { return CInt(0) }
            current = isOpen
            return netwatch_set_upper_half_unreachable(descriptor, isOpen ? 0 : 1)
        }
        if error != 0 { throw SystemError(call: "ioctl of a route", errno: error) }
    }
}
