package import OfflineQueue

/// What the service does when a host goes down and when it is up again.
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

    package var action: Action
    /// The events to report. Default: all.
    package var events = Set(Event.allCases)
    /// The names of the hosts whose outages are reported. Default: `nil`, all hosts.
    package var hosts: Set<String>?
    /// The causes of outages to report. Default: `remote`.
    package var causes: Set<OutageCause> = [.remote]

    package init(_ action: Action) {
        self.action = action
    }

    /// Whether outages of a host are reported.
    func concerns(_ host: String) -> Bool { hosts?.contains(host) ?? true }
}
