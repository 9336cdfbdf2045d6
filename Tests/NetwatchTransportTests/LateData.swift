internal import Glibc
internal import NetwatchTestSupport

@testable internal import NetwatchTransport

extension TransferEngine {
    /// Starts a transfer, which begins in the same turn of the loop in which data of its server arrives.
    ///
    /// - Parameters:
    ///   - request: The request of the transfer.
    ///   - port: The server's port; ignored for a unix socket.
    ///   - send: Makes the server send the data.
    nonisolated func start(
        _ request: TransferRequest,
        to port: UInt16,
        whenArrived send: @escaping @Sendable () -> Void
    ) -> TransferRecorder {
        let isQueued = Gate()
        perform { _ in isQueued.wait() }
        perform { _ in
            send()
            Self.waitForUnreadData(request, port)
        }
        let recorder = TransferRecorder()
        start(request) { recorder.deliver($0) }
        isQueued.open()
        return recorder
    }

    /// Blocks until a connection to the server has data to read.
    ///
    /// The loop's thread must not return before the data is in the socket, and the kernel reports that only when it is
    /// asked.
    static func waitForUnreadData(_ request: TransferRequest, _ port: UInt16) {
        while !hasUnreadData(request, port) { poll(nil, 0, 5) }
    }

    /// Returns whether a connection to the server has data to read.
    private static func hasUnreadData(_ request: TransferRequest, _ port: UInt16) -> Bool {
        (CInt(0)..<4096).contains { (descriptor: CInt) -> Bool in
            let isToServer =
                request.unixSocketPath.map { $0 == peerPath(of: descriptor) }
                ?? (WatchedSocket(descriptor: descriptor, number: 0).ends.remotePort == port)
            return isToServer && !WatchedSocket.isQuiet(descriptor)
        }
    }

    /// Returns the path of the unix socket to which a socket is connected.
    private static func peerPath(of descriptor: CInt) -> String? {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout.size(ofValue: address))
        let result = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getpeername(descriptor, $0, &length)
            }
        }
        guard result == 0, address.sun_family == sa_family_t(AF_UNIX) else { return nil }
        return withUnsafeBytes(of: address.sun_path) { path in
            String(decoding: path.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}
