internal import Glibc
package import NetwatchEventLoop

/// Reports the state of the service to the service manager, by the datagram protocol of `sd_notify(3)`.
///
/// Without a service manager, calls do nothing. They never block, and can come from any thread.
package struct SystemdNotifier: Sendable {
    /// An assignment of the protocol, such as `READY=1`.
    package enum State: Hashable, Sendable {
        /// `READY=1`: the service is up.
        case ready
        /// `RELOADING=1` with the current time as `MONOTONIC_USEC=…`: the service reads its configuration again.
        case reloading
        /// `WATCHDOG=1`: the service makes progress.
        case watchdog
        /// `STOPPING=1`: the service is shutting down.
        case stopping
        /// `STATUS=…`: a line for people, which `systemctl status` shows.
        case status(String)
    }

    private let address: String?

    /// - Parameter address: The value of `NOTIFY_SOCKET`: a path, or a name in the abstract namespace after an `@`.
    ///   `nil` or empty if there is no service manager.
    package init(address: String?) {
        self.address = address.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Whether a service manager receives the states.
    package var hasManager: Bool { address != nil }

    /// Reads `NOTIFY_SOCKET` of this process.
    package static func fromEnvironment() -> SystemdNotifier {
        SystemdNotifier(address: getenv("NOTIFY_SOCKET").map { String(cString: $0) })
    }

    /// How often the service manager expects ``State/watchdog`` (`sd_watchdog_enabled(3)`); `nil` for never.
    package static func watchdogInterval(_ environment: [String: String], pid: Int32 = getpid()) -> Duration?
    {
        guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0,
            environment["WATCHDOG_PID"].map({ $0 == "\(pid)" }) ?? true
        else { return nil }
        return .microseconds(microseconds)
    }

    /// Sends the states in one datagram.
    ///
    /// - Returns: The error if the datagram could not be sent, for logging; otherwise `nil`. `EAFNOSUPPORT`: the
    ///   address is neither a path nor an abstract name. `EAGAIN`: the manager has not yet read earlier datagrams.
    package func notify(_ states: State...) -> SystemError? {
        guard let address else { return nil }
        do throws(SystemError) {
            try send(states.map(\.line).joined(separator: "\n"), to: address)
            return nil
        } catch {
            return error
        }
    }

    private func send(_ message: String, to address: String) throws(SystemError) {
        guard let target = Self.target(address) else {
            throw SystemError(call: "sendto \(address)", errno: EAFNOSUPPORT)
        }
        let socket = try unixSocket(.datagram)
        let bytes = Array(message.utf8)
        try systemCall("sendto \(address)") {
            target.withSockaddr {
                sendto(socket.rawValue, bytes, bytes.count, CInt(MSG_NOSIGNAL), $0, $1)
            }
        }
    }

    private static func target(_ address: String) -> UnixSocketAddress? {
        switch address.first {
        case "/": UnixSocketAddress(path: address)
        case "@": UnixSocketAddress(abstractName: String(address.dropFirst()))
        default: nil
        }
    }
}

extension SystemdNotifier.State {
    /// The maximum bytes of a status. systemd drops a datagram of more than 4096 bytes (its `NOTIFY_BUFFER_MAX`),
    /// together with a `READY=1` in it.
    private static let longestStatus = 1024

    fileprivate var line: String {
        switch self {
        case .ready: "READY=1"
        case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(Self.monotonicMicroseconds)"
        case .watchdog: "WATCHDOG=1"
        case .stopping: "STOPPING=1"
        case .status(let text): "STATUS=\(text.printable(upTo: Self.longestStatus))"
        }
    }

    /// The time on `CLOCK_MONOTONIC`.
    private static var monotonicMicroseconds: Int64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return Int64(now.tv_sec) * 1_000_000 + Int64(now.tv_nsec) / 1000
    }
}
