internal import Glibc
internal import NetwatchEventLoop
package import OfflineQueue

/// What the service does when hosts go down and when they are up again.
package struct Hook: Hashable, Sendable {
    /// What a hook reports.
    package enum Event: String, Hashable, Sendable, CaseIterable {
        case down
        case up
    }

    /// How a hook reports it.
    package enum Action: Hashable, Sendable {
        /// A POST request, which the queue sends.
        case webhook(Webhook)
        case program(HookProgram)
    }

    /// The accepted values of ``groupWait``: 0 to 1 h.
    package static let acceptedGroupWaits: ClosedRange<Duration> = .zero...(.seconds(3600))
    /// The default of ``groupWait``: 30 s, as in the Alertmanager of Prometheus.
    package static let defaultGroupWait = Duration.seconds(30)

    package var action: Action
    /// The events to report. Default: all.
    package var events = Set(Event.allCases)
    /// The names of the hosts whose outages are reported. Default: `nil`, all hosts.
    package var hosts: Set<String>?
    /// The causes of outages to report. Default: `remote`.
    package var causes: Set<OutageCause> = [.remote]
    /// How long the first change waits for others, which are reported in the same message. Default:
    /// ``defaultGroupWait``. Zero: each change is reported immediately.
    package var groupWait = Hook.defaultGroupWait

    package init(_ action: Action) {
        self.action = action
    }

    /// Whether outages of a host are reported.
    func concerns(_ host: String) -> Bool { hosts?.contains(host) ?? true }
}

// MARK: - Identity

extension Hook {
    /// Returns the key of each hook under which the history records what the hook has reported.
    ///
    /// A hook keeps its key while its receiver, its events, its causes and its hosts stay the same. A URL may contain a
    /// secret, so the keys are hashes.
    static func keys(of hooks: [Hook]) throws(QueueError) -> [String] {
        var counts: [String: Int] = [:]
        var keys: [String] = []
        for hook in hooks {
            let identity = hook.identity
            counts[identity, default: 0] += 1
            keys.append(try UUIDv8.make(hashing: "netwatch hook \(counts[identity] ?? 1) \(identity)"))
        }
        return keys
    }

    private var identity: String {
        let receiver =
            switch action {
            case .webhook(let webhook): ["webhook", webhook.url]
            case .program(let program): ["program", program.path] + program.arguments
            }
        let events = events.map(\.rawValue).sorted(), causes = causes.map(\.rawValue).sorted()
        // Arguments cannot contain NUL, so different hooks have different texts.
        let parts: [[String]] = [
            receiver, ["on"], events, ["causes"], causes, ["hosts"], hosts?.sorted() ?? [],
        ]
        return parts.joined().joined(separator: "\0")
    }
}

/// A program that a hook runs, without a shell.
package struct HookProgram: Hashable, Sendable {
    /// The accepted timeouts: 1 s to 1 h.
    package static let acceptedTimeouts: ClosedRange<Duration> = .seconds(1)...Duration.seconds(3600)
    /// The default of ``timeout``: 30 s.
    package static let defaultTimeout = Duration.seconds(30)

    /// The absolute path of the program.
    package var path: String
    package var arguments: [String] = []
    /// The time after which the program is ended. Default: ``defaultTimeout``.
    package var timeout = HookProgram.defaultTimeout

    package init(path: String) {
        self.path = path
    }

    /// Says why this process cannot execute the program; `nil` if it can.
    package var fault: String? {
        guard access(path, X_OK) != 0 else { return nil }
        return "the program `\(path)` of a hook cannot be executed: \(errnoDescription(errno))"
    }
}

/// What a hook reports of one host: it is down, or up again.
struct HostAlert: Hashable, Sendable {
    let event: Hook.Event
    let host: String
    /// What is checked, for people.
    let check: String
    let cause: OutageCause
    /// Why the host is down; `nil` if that is not known.
    let reason: String?
    /// Identifies the outage among those of the host; see ``HostTracker/Start/id``.
    let outage: Int64
    /// When the outage began, in milliseconds since 1970.
    let downSince: Int64
    /// When the host was up again; `nil` if it is down.
    let upSince: Int64?
}
