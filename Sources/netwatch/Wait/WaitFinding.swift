internal import NetworkReachability

/// The current state of one part of a ``WaitCondition``.
struct WaitFinding: Sendable {
    private(set) var isMet: Bool
    /// A number that changes when the part was temporarily not met, or when its path changed.
    var generation: UInt64 = 0
    /// The state for people: `example.com is not reachable (no route)`.
    private(set) var summary: String
    /// The error because of which the state can never be determined; `nil` if there is none.
    var failure: CommandError?

    /// - Parameter interfaces: The interfaces that the path may use; empty for any.
    init(_ status: PathStatus, interfaces: [String]) {
        let isByThese =
            interfaces.isEmpty || status.path.map { interfaces.contains($0.interfaceName) } ?? false
        isMet = status.isReachable && isByThese
        generation = status.pathGeneration
        let names = interfaces.map { "`\($0)`" }.joined(separator: " or ")
        let restriction = status.isReachable && !isByThese ? ", but not over \(names)" : ""
        let state = "\(status.reachability.summary) (\(status.summary))"
        summary = "\(status.target.subject) is \(state)\(restriction)"
    }

    /// Creates the state of an interface, which is met if the interface has a carrier.
    ///
    /// - Parameter interface: The name of the interface; `nil` for any interface except loopback.
    init(_ snapshot: NetworkSnapshot, interface: String?) {
        let links = snapshot.interfaces.filter { link in
            interface.map { link.name == $0 } ?? (link.type != .loopback)
        }
        isMet = links.contains(where: \.hasCarrier)
        let subject = interface.map { "`\($0)`" }
        guard !links.isEmpty else {
            summary = subject.map { "there is no interface \($0)" } ?? "there is no interface but loopback"
            return
        }
        summary =
            isMet
            ? "\(subject ?? "an interface") has a carrier"
            : subject.map { "\($0) has no carrier" } ?? "no interface has a carrier"
    }

    /// Adds the result of a probe. The state is only met if the probe was successful, too.
    mutating func require(_ validated: ValidatedStatus) {
        guard validated.status.isReachable else { return }
        isMet = isMet && validated.validation == .valid
        let subject = validated.status.target.subject
        let answer =
            validated.validation == .none
            ? "has not responded yet" : "is \(validated.stateText) (\(validated.summary(separator: ", ")))"
        summary = "\(subject) \(answer)"
    }

    init(failure: CommandError) {
        isMet = false
        summary = failure.message
        self.failure = failure
    }
}
