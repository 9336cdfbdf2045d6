internal import NetwatchNetlink
internal import NetworkReachability

/// What is known about one of the things that are waited for.
struct WaitFinding: Sendable {
    private(set) var isMet: Bool
    /// Another number than before: it was lost in between, or is another way now.
    var generation: UInt64 = 0
    /// How things are, for people: `example.com is not reachable (no route)`.
    private(set) var words: String
    /// Set when nothing will ever be known.
    var failure: CommandError?

    /// - Parameter interfaces: By which of them the way has to lead; empty for any.
    init(_ status: PathStatus, interfaces: [String]) {
        let target = status.target == .general ? "the public Internet" : "`\(status.target)`"
        let isByThese =
            interfaces.isEmpty || status.path.map { interfaces.contains($0.interfaceName) } ?? false
        isMet = status.isReachable && isByThese
        generation = status.pathGeneration
        let names = interfaces.map { "`\($0)`" }.joined(separator: " or ")
        let restriction = status.isReachable && !isByThese ? ", but not by \(names)" : ""
        words = "\(target) is \(status.reachability.words) (\(status.words))\(restriction)"
    }

    /// Whether an interface other than loopback has a carrier.
    ///
    /// - Parameter interface: Which one; `nil` for any.
    init(_ snapshot: NetlinkSnapshot, interface: String?) {
        let links = snapshot.links.values.filter { link in
            interface.map { link.name == $0 } ?? !link.isLoopback
        }
        isMet = links.contains(where: \.hasCarrier)
        let subject = interface.map { "`\($0)`" }
        guard !links.isEmpty else {
            words = subject.map { "there is no interface \($0)" } ?? "there is no interface but loopback"
            return
        }
        words = "\(subject ?? "an interface") has \(isMet ? "a" : "no") carrier"
    }

    /// Has an answer be needed too.
    mutating func require(_ validated: ValidatedStatus) {
        guard validated.status.isReachable else { return }
        isMet = isMet && validated.validation == .valid
        let target = validated.status.target
        let subject = target == .general ? "the public Internet" : "`\(target)`"
        let answer =
            validated.validation == .none
            ? "has not answered yet" : "is \(validated.stateWords) (\(validated.words))"
        words = "\(subject) \(answer)"
    }

    init(failure: CommandError) {
        isMet = false
        words = failure.message
        self.failure = failure
    }
}
