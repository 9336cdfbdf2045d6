internal import NetwatchEventLoop

/// A custom check of a server's certificates. It is equal only to itself, because closures cannot be compared.
///
/// There are two kinds:
///
/// - The client's own checks, such as pins, run in the handshake, on the engine's thread.
/// - The program's checks may block, so they never run there. The engine refuses the handshake before anything is sent,
///   calls the check on a separate thread, and connects again if the check has accepted the server. OpenSSL cannot wait
///   for the answer: libcurl fails with code 35 if the callback uses `SSL_set_retry_verify`.
package final class TrustCheck: Hashable, Sendable {
    /// Returns whether the server is accepted.
    package typealias Evaluate = @Sendable (PresentedTrust) -> Bool

    /// The owner of a check's code.
    package enum Owner: Sendable {
        /// The client's own code, which does not block. The engine calls it on its own thread in every handshake.
        case client
        /// The program's code, which may block. It may be called on several threads at the same time. A server that it
        /// accepts stays accepted for ``AcceptedServers/lifetime``. ``TrustQuestions`` limits the calls that do not
        /// return.
        case program
    }

    let owner: Owner
    /// Returns whether the server is accepted. May block if ``owner`` is the program.
    package let evaluate: Evaluate
    private let accepted = Lock(AcceptedServers())

    /// Creates a check.
    ///
    /// - Parameters:
    ///   - owner: Whose code `evaluate` is. Default: the client's.
    ///   - evaluate: Returns whether the server is accepted.
    package init(by owner: Owner = .client, _ evaluate: @escaping Evaluate) {
        self.owner = owner
        self.evaluate = evaluate
    }

    /// Returns the answer in a handshake; `nil` if the program must be asked.
    func answer(to presented: PresentedTrust) -> Bool? {
        guard owner == .program else { return evaluate(presented) }
        return accepted.withLock { $0.contains(presented, at: .now) } ? true : nil
    }

    /// Remembers a server that the program has accepted.
    ///
    /// - Parameter start: The time at which the program's code was called.
    func remember(_ server: PresentedTrust, since start: BootInstant) {
        accepted.withLock { $0.insert(server, at: start) }
    }

    package static func == (one: TrustCheck, other: TrustCheck) -> Bool { one === other }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
