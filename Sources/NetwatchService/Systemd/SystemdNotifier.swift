internal import Glibc
package import NetwatchEventLoop

/// Tells the service manager how the service is: the datagram protocol of `sd_notify(3)`.
///
/// Without a service manager that listens, everything is a silent no-op. Callable from any thread; nothing
/// blocks.
package struct SystemdNotifier: Sendable {
    /// One assignment of the protocol.
    package enum State: Hashable, Sendable {
        /// `READY=1`: the service is up.
        case ready
        /// `STOPPING=1`: the service goes down.
        case stopping
        /// `STATUS=…`: one line for people, as `systemctl status` shows it.
        case status(String)
    }

    private let address: String?

    /// - Parameter address: The value of `NOTIFY_SOCKET`: a path, or a name in the abstract namespace
    ///   behind an `@`. `nil` or empty when nobody listens.
    package init(address: String?) {
        self.address = address.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Reads `NOTIFY_SOCKET` of this process.
    package static func fromEnvironment() -> SystemdNotifier {
        SystemdNotifier(address: getenv("NOTIFY_SOCKET").map { String(cString: $0) })
    }

    /// Sends the states in one datagram.
    ///
    /// - Returns: Why it could not be sent, to be logged, or `nil`. `EAFNOSUPPORT`: the address is neither
    ///   a path nor an abstract name. `EAGAIN`: the manager has not read what it was sent before.
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
    /// Bytes of a status. systemd drops a datagram of more than 4096 bytes (its `NOTIFY_BUFFER_MAX`), and
    /// a `READY=1` in it would be lost too.
    private static let longestStatus = 1024

    fileprivate var line: String {
        switch self {
        case .ready: "READY=1"
        case .stopping: "STOPPING=1"
        case .status(let text): "STATUS=\(Self.oneLine(text))"
        }
    }

    /// A line break would begin another assignment; a control character has no place in a terminal.
    private static func oneLine(_ text: String) -> String {
        var line = String.UnicodeScalarView()
        var length = 0
        for scalar in text.unicodeScalars {
            let isControl = scalar.properties.generalCategory == .control
            let printable = isControl || scalar == "\u{2028}" || scalar == "\u{2029}" ? " " : scalar
            length += UTF8.width(printable)
            guard length <= longestStatus else { break }
            line.append(printable)
        }
        return String(line)
    }
}
