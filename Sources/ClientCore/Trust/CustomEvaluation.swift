/// A program's own evaluation of servers. It is equal to itself only.
///
/// Requests share connections only if their servers were evaluated alike, and nobody can tell whether two closures
/// are. So make one evaluation and use it for all hosts it is for, rather than one for each request.
public final class CustomEvaluation: Hashable, Sendable {
    /// Says whether a server is trusted.
    ///
    /// It is called in every TLS handshake, on the thread that carries all transfers of the process. It must not
    /// block: no request, no file, no lock that is held for long.
    public typealias Evaluate = @Sendable (_ serverTrust: ServerTrust, _ host: String) -> Bool

    let evaluate: Evaluate

    /// Makes an evaluation.
    ///
    /// - Parameter evaluate: Says whether a server is trusted.
    @preconcurrency
    public init(_ evaluate: @escaping Evaluate) {
        self.evaluate = evaluate
    }

    /// Whether both are the same object.
    public static func == (one: CustomEvaluation, other: CustomEvaluation) -> Bool { one === other }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
