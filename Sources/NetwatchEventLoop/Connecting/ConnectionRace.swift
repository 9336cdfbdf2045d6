internal import Glibc

/// An address to connect to, and the socket binding to use for it.
package struct ConnectionCandidate: Hashable, Sendable {
    package let address: IPAddress
    package let binding: SocketBinding?

    package init(_ address: IPAddress, binding: SocketBinding? = nil) {
        self.address = address
        self.binding = binding
    }
}

/// Decides which of a host's addresses is tried next. A value without I/O.
///
/// RFC 8305 §4: the families take turns, beginning with that of the first address, so that a family without a route costs
/// one delay and not one for each of its addresses.
package struct ConnectionRace: Sendable {
    /// The delay between the starts of two attempts: the Connection Attempt Delay that RFC 8305 §5 recommends.
    package static let attemptDelay: Duration = .milliseconds(250)
    /// The maximum number of attempts at once. A ninth replaces the oldest, which has run for two seconds by then: enough
    /// for one retransmission of a lost SYN (RFC 6298 §2: 1 s).
    package static let mostAtOnce = 8
    /// The maximum number of addresses of one host. The last attempt starts after 8 s, well before the default connection
    /// timeout of 15 s.
    package static let mostAddresses = 32

    /// What the caller must do now.
    package enum Step: Equatable, Sendable {
        /// Connect to a candidate, whose attempt has this number. First end the attempt with the other number, if any.
        case connect(Int, ConnectionCandidate, insteadOf: Int?)
        /// All attempts have failed.
        case failed
        /// No address is left, and some attempts are still undecided.
        case wait
    }

    private var waiting: ArraySlice<ConnectionCandidate>
    private let left: Int
    private var begun: [ConnectionAttempt] = []
    /// The numbers of the undecided attempts, the oldest first.
    private var open: [Int] = []

    /// - Parameters:
    ///   - candidates: In the order of preference (RFC 6724).
    ///   - winner: The address that served last time. It is tried first if it is among the candidates.
    package init(_ candidates: [ConnectionCandidate], preferring winner: IPAddress? = nil) {
        let order = Self.winnerFirst(Self.takingTurns(candidates), winner)
        waiting = order.prefix(Self.mostAddresses)
        left = order.count - waiting.count
    }

    /// Starts the next attempt if an address is left.
    package mutating func next() -> Step {
        guard let candidate = waiting.popFirst() else { return open.isEmpty ? .failed : .wait }
        let oldest = open.count < Self.mostAtOnce ? nil : open.removeFirst()
        begun.append(ConnectionAttempt(address: candidate.address, error: nil))
        open.append(begun.endIndex - 1)
        return .connect(begun.endIndex - 1, candidate, insteadOf: oldest)
    }

    /// Whether an address is left that has not been tried.
    package var hasNext: Bool { !waiting.isEmpty }

    package mutating func failed(_ attempt: Int, _ error: SystemError) {
        open.removeAll { $0 == attempt }
        begun[attempt] = ConnectionAttempt(address: begun[attempt].address, error: error)
    }

    /// The outcomes of all attempts so far.
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
