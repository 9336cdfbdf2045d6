internal import Glibc

/// An address that may be connected to, and the way that the packets have to take.
package struct ConnectionCandidate: Hashable, Sendable {
    package let address: IPAddress
    package let binding: SocketBinding?

    package init(_ address: IPAddress, binding: SocketBinding? = nil) {
        self.address = address
        self.binding = binding
    }
}

/// Which of a host's addresses is tried next, and what it means that none could be connected to. A value without I/O.
///
/// RFC 8305 §4: the families take turns, beginning with that of the first address, so that a family without a route costs
/// one delay and not one for each of its addresses.
package struct ConnectionRace: Sendable {
    /// How long an attempt is left alone before the next begins beside it: the Connection Attempt Delay that RFC 8305 §5
    /// recommends.
    package static let attemptDelay: Duration = .milliseconds(250)
    /// How many attempts run at once. A ninth takes the place of the oldest, which has had two seconds by then: enough for a
    /// SYN that was lost and sent again (RFC 6298 §2: 1 s).
    package static let mostAtOnce = 8
    /// How many addresses of one host are tried. The last is begun after 8 s, in time before a connection timeout of 15 s.
    package static let mostAddresses = 32

    /// What is to be done now.
    package enum Step: Equatable, Sendable {
        /// Connect to a candidate, whose attempt has this number; before that, end the attempt with the other number.
        case connect(Int, ConnectionCandidate, insteadOf: Int?)
        /// Every address has been tried, and none is being connected to any more.
        case failed
        /// Others are being connected to, and there is nothing to begin.
        case wait
    }

    private var waiting: ArraySlice<ConnectionCandidate>
    private let left: Int
    private var begun: [ConnectionAttempt] = []
    /// The numbers of those that are undecided, the oldest first.
    private var open: [Int] = []

    /// - Parameters:
    ///   - candidates: In the order of preference (RFC 6724).
    ///   - winner: The address that was connected to last time, which goes first if it is among them.
    package init(_ candidates: [ConnectionCandidate], preferring winner: IPAddress? = nil) {
        let order = Self.winnerFirst(Self.takingTurns(candidates), winner)
        waiting = order.prefix(Self.mostAddresses)
        left = order.count - waiting.count
    }

    /// Begins the next attempt, if there is an address left.
    package mutating func next() -> Step {
        guard let candidate = waiting.popFirst() else { return open.isEmpty ? .failed : .wait }
        let oldest = open.count < Self.mostAtOnce ? nil : open.removeFirst()
        begun.append(ConnectionAttempt(address: candidate.address, error: nil))
        open.append(begun.endIndex - 1)
        return .connect(begun.endIndex - 1, candidate, insteadOf: oldest)
    }

    /// Whether there is an address that no attempt was begun with.
    package var hasNext: Bool { !waiting.isEmpty }

    package mutating func failed(_ attempt: Int, _ error: SystemError) {
        open.removeAll { $0 == attempt }
        begun[attempt] = ConnectionAttempt(address: begun[attempt].address, error: error)
    }

    /// What has become of the race so far.
    package var failure: ConnectionFailure {
        ConnectionFailure(attempts: begun, untried: left + waiting.count)
    }

    private static func takingTurns(_ candidates: [ConnectionCandidate]) -> [ConnectionCandidate] {
        guard let first = candidates.first?.address.family else { return [] }
        let preferred = candidates.filter { $0.address.family == first }
        let others = candidates.filter { $0.address.family != first }
        let paired = zip(preferred, others).flatMap { [$0, $1] }
        return paired + preferred.dropFirst(others.count) + others.dropFirst(preferred.count)
    }

    private static func winnerFirst(
        _ order: [ConnectionCandidate],
        _ winner: IPAddress?
    ) -> [ConnectionCandidate] {
        guard let index = order.firstIndex(where: { $0.address == winner }) else { return order }
        return [order[index]] + order[..<index] + order[(index + 1)...]
    }
}
