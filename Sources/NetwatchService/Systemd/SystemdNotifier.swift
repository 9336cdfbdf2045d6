internal import Glibc
package import NetwatchEventLoop
internal import OfflineQueue

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

/// Reports to the service manager's watchdog that all parts of the service make progress. If one part hangs, the next
/// report is late, and the service manager restarts the service.
struct Heartbeat: Sendable {
    /// The time between two reports.
    let interval: Duration
    /// Each function calls one part of the service, and returns when that part has responded.
    let parts: [@Sendable () async -> Void]
    let report: @Sendable () -> Void

    /// Reports until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            for part in parts { await part() }
            report()
            try? await Task.sleep(for: interval)
        }
    }
}

/// The state of the service in one line for people, which `systemctl status` shows.
struct StatusLine {
    let network: ControlMessage.Network
    /// The number of watched hosts in each state.
    let hosts: [String: Int]
    /// `nil` if the store cannot be read.
    let queue: QueueCounts?
    /// Whether the service uses its last good configuration, because it cannot use its files.
    var usesLastGood = false
    /// Whether a scan of the store has found damage.
    var isStoreDamaged = false
    /// Whether the queue refuses new requests, because its disk is full.
    var isDiskFull = false

    /// For example `network: reachable; hosts: 3 up, 1 down; queue: 4 waiting, 1 held`.
    var text: String {
        [
            networkText, hostText, queueText, usesLastGood ? "last good configuration" : nil,
            isStoreDamaged ? "damaged store" : nil, isDiskFull ? "full disk" : nil,
        ].compactMap(\.self).joined(separator: "; ")
    }

    private var networkText: String { "network: \(network.reason ?? network.state)" }

    private var hostText: String? {
        let counts = ["up", "degraded", "down", "unknown"].map { (hosts[$0, default: 0], $0) }
        return Self.list(counts).map { "hosts: \($0)" }
    }

    private var queueText: String? {
        queue.map { queue in
            let waiting = queue[.pending] + queue[.blocked] + queue[.inflight]
            return "queue: \(Self.list([(waiting, "waiting"), (queue[.held], "held")]) ?? "empty")"
        }
    }

    /// Returns the numbers that are not 0 with their names; `nil` if all are 0.
    private static func list(_ counts: [(Int, String)]) -> String? {
        let texts = counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }
}

extension BootID {
    /// A note for the log if the id of this boot is not known.
    static var note: String? {
        guard current == nil else { return nil }
        return "the id of this boot cannot be read from /proc/sys/kernel/random/boot_id or from the variable "
            + "\(variable), so each start counts as a reboot, after which ages are measured by the wall clock; "
            + "add `Environment=\(variable)=%b` to the unit"
    }
}
