internal import Glibc

/// An address to connect to, and the binding of the socket that connects to it.
package struct ConnectionCandidate: Hashable, Sendable {
    package let address: IPAddress
    package let binding: SocketBinding?

    package init(_ address: IPAddress, binding: SocketBinding? = nil) {
        self.address = address
        self.binding = binding
    }
}

/// The order in which the addresses of a host are tried. A value without I/O.
///
/// The families alternate, and the family of the first address begins (RFC 8305 §4). If a family has no route, this
/// costs one delay instead of one per address.
package struct ConnectionRace: Sendable {
    /// The delay between the starts of two attempts: 250 ms, as recommended by RFC 8305 §5 (Connection Attempt Delay).
    package static let attemptDelay: Duration = .milliseconds(250)
    /// The maximum number of concurrent attempts: 8. A further attempt replaces the oldest one, which has then run for
    /// two seconds. That is enough for one retransmission of a lost SYN (after 1 s, RFC 6298 §2).
    package static let maximumConcurrentAttempts = 8

    /// The next action of the caller.
    package enum Step: Equatable, Sendable {
        /// Connect to the candidate; the number identifies the attempt. If `insteadOf` is not `nil`, first end the
        /// attempt with that number.
        case connect(Int, ConnectionCandidate, insteadOf: Int?)
        /// All attempts have failed.
        case failed
        /// No address is left, and some attempts are still in progress.
        case wait
    }

    private var untried: ArraySlice<ConnectionCandidate>
    private var attempts: [ConnectionAttempt] = []
    /// The numbers of the attempts in progress, the oldest first.
    private var running: [Int] = []

    /// Creates a race.
    ///
    /// - Parameters:
    ///   - candidates: The addresses in order of preference (RFC 6724).
    ///   - preferred: The addresses to try first, in this order. Those that are not among the candidates are ignored.
    ///     Default: none.
    package init(_ candidates: [ConnectionCandidate], preferring preferred: [IPAddress] = []) {
        untried = Self.preferredFirst(Self.interleaved(candidates), preferred)[...]
    }

    /// Returns the next step. If an address is left, this step starts an attempt to it.
    package mutating func next() -> Step {
        guard let candidate = untried.popFirst() else { return running.isEmpty ? .failed : .wait }
        let oldest = running.count < Self.maximumConcurrentAttempts ? nil : running.removeFirst()
        attempts.append(ConnectionAttempt(address: candidate.address, error: nil))
        running.append(attempts.endIndex - 1)
        return .connect(attempts.endIndex - 1, candidate, insteadOf: oldest)
    }

    /// Whether there is an address that has not been tried.
    package var hasNext: Bool { !untried.isEmpty }

    package mutating func failed(_ attempt: Int, _ error: SystemError) {
        running.removeAll { $0 == attempt }
        attempts[attempt] = ConnectionAttempt(address: attempts[attempt].address, error: error)
    }

    /// The failure that describes all attempts so far.
    package var failure: ConnectionFailure {
        ConnectionFailure(attempts: attempts, untried: untried.map(\.address))
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
        _ preferred: [IPAddress]
    ) -> [ConnectionCandidate] {
        guard !preferred.isEmpty else { return order }
        return preferred.flatMap { address in order.filter { $0.address == address } }
            + order.filter { !preferred.contains($0.address) }
    }
}
