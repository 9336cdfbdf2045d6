/// A closure of the program that evaluates servers.
///
/// An evaluation equals only itself, because closures cannot be compared. Requests share connections only if their
/// evaluations are equal. Create one evaluation and use it for all its hosts, rather than one for each request.
public final class CustomEvaluation: Hashable, Sendable {
    /// Returns whether a server is trusted.
    ///
    /// The closure is called in every TLS handshake, on the thread that drives all transfers of the process. It must
    /// not block: it must not wait for requests, access files, or wait for locks that are held for long.
    public typealias Evaluate = @Sendable (_ serverTrust: ServerTrust, _ host: String) -> Bool

    let evaluate: Evaluate

    /// Creates an evaluation.
    ///
    /// - Parameter evaluate: Returns whether a server is trusted.
    @preconcurrency
    public init(_ evaluate: @escaping Evaluate) {
        self.evaluate = evaluate
    }

    /// Returns whether both evaluations are the same object.
    public static func == (one: CustomEvaluation, other: CustomEvaluation) -> Bool { one === other }

    /// Hashes the identity of the object.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
