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

/// Decides which address of a host is tried next. A pure value.
///
/// The families alternate, starting with that of the first address (RFC 8305 §4). A family without a route then costs
/// one delay, not one per address.
package struct ConnectionRace: Sendable {
    /// The delay between the starts of two attempts: the Connection Attempt Delay recommended by RFC 8305 §5.
    package static let attemptDelay: Duration = .milliseconds(250)
    /// The maximum number of concurrent attempts. A ninth replaces the oldest, which has then run for two seconds.
    /// That is enough for one retransmission of a lost SYN (after 1 s, RFC 6298 §2).
    package static let maximumConcurrentAttempts = 8
    /// The maximum number of addresses per host. The last attempt starts after 8 s, well before the default
    /// connection timeout of 15 s.
    package static let maximumAddresses = 32

    /// What the caller must do next.
    package enum Step: Equatable, Sendable {
        /// Connect to a candidate, in the attempt with this number. If `insteadOf` is not `nil`, first end that
        /// attempt.
        case connect(Int, ConnectionCandidate, insteadOf: Int?)
        /// All attempts have failed.
        case failed
        /// No address is left, and some attempts are still in progress.
        case wait
    }

    private var untried: ArraySlice<ConnectionCandidate>
    /// The number of addresses beyond the maximum.
    private let excess: Int
    private var attempts: [ConnectionAttempt] = []
    /// The numbers of the attempts in progress, the oldest first.
    private var running: [Int] = []

    /// - Parameters:
    ///   - candidates: The candidates in order of preference (RFC 6724).
    ///   - preferred: The address that last worked. It is tried first if it is one of the candidates.
    package init(_ candidates: [ConnectionCandidate], preferring preferred: IPAddress? = nil) {
        let order = Self.preferredFirst(Self.interleaved(candidates), preferred)
        untried = order.prefix(Self.maximumAddresses)
        excess = order.count - untried.count
    }

    /// Starts the next attempt if an address is left.
    package mutating func next() -> Step {
        guard let candidate = untried.popFirst() else { return running.isEmpty ? .failed : .wait }
        let oldest = running.count < Self.maximumConcurrentAttempts ? nil : running.removeFirst()
        attempts.append(ConnectionAttempt(address: candidate.address, error: nil))
        running.append(attempts.endIndex - 1)
        return .connect(attempts.endIndex - 1, candidate, insteadOf: oldest)
    }

    /// Whether an address is left that has not been tried.
    package var hasNext: Bool { !untried.isEmpty }

    package mutating func failed(_ attempt: Int, _ error: SystemError) {
        running.removeAll { $0 == attempt }
        attempts[attempt] = ConnectionAttempt(address: attempts[attempt].address, error: error)
    }

    /// The outcomes of all attempts so far.
    package var failure: ConnectionFailure {
        ConnectionFailure(attempts: attempts, untried: excess + untried.count)
    }

    private static func interleaved(_ candidates: [ConnectionCandidate]) -> [ConnectionCandidate] {
        guard let first = candidates.first?.address.family else { return [] }
        let preferred = candidates.filter { $0.address.family == first }
        let others = candidates.filter { $0.address.family != first }
        let paired = zip(preferred, others).flatMap { [$0, $1] }
        return paired + preferred.dropFirst(others.count) + others.dropFirst(preferred.count)
    }

    private static func preferredFirst(
        _ order: [ConnectionCandidate],
        _ preferred: IPAddress?
    ) -> [ConnectionCandidate] {
        guard let index = order.firstIndex(where: { $0.address == preferred }) else { return order }
        return [order[index]] + order[..<index] + order[(index + 1)...]
    }
}
