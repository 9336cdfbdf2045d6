/// A closure of the program that evaluates servers.
///
/// An evaluation equals only itself, because closures cannot be compared. Requests share connections only if their
/// evaluations are equal. Create one evaluation and use it for all its hosts, rather than one for each request.
public final class CustomEvaluation: Hashable, Sendable {
    /// Returns whether a server is trusted.
    ///
    /// The closure is called on a separate thread, and several calls may run at the same time. It may block: it delays
    /// only the requests that wait for its result.
    ///
    /// - The client makes two handshakes with a server that it does not know. The first one is refused before anything
    ///   of the request is sent. The client connects again when the closure has returned true.
    /// - The result true is used again for 10 minutes, in the same session, for the same host, and if the server
    ///   presents exactly the same certificates with the same ``ServerTrust/verdict-swift.property``. A session
    ///   remembers up to 64 servers for each policy and client identity. The 10 minutes begin with the call, and apply
    ///   to new connections only: an open connection stays in use afterwards.
    /// - The result false ends the requests that wait for it, and is not remembered.
    /// - Requests that wait for the same result share one call. Each of them makes its own first handshake.
    /// - A request waits for at most 30 s, or for its idle timeout or the rest of its total timeout if these are
    ///   shorter. Then it fails with `URLError.timedOut`. A call that has lasted longer than 30 s is repeated for the
    ///   next request. The newest call decides: all requests that still wait get its result, and the result of the
    ///   earlier call is ignored.
    /// - In a session, at most 4 calls are in progress for the same policy, client identity and host, and 64 for the
    ///   same policy and client identity. In the process, at most 128 are in progress. These numbers include calls that
    ///   never return. Other requests wait until a call returns.
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
