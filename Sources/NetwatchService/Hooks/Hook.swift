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
