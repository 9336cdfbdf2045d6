package import ClientCore

/// The interface through which the queue sends attempts. ``SessionSender`` implements it with the HTTP client.
package protocol AttemptSender: Sendable {
    /// Sends the attempt and returns its outcome. Cancelling the task ends the attempt soon; it then fails with
    /// `CURLcode` 42 (`CURLE_ABORTED_BY_CALLBACK`).
    func send(_ attempt: Attempt) async -> AttemptOutcome

    /// The session that sends, for credentials that adapt requests; `nil` if there is none.
    var session: SessionManager? { get }

    /// Makes all later attempts open new connections, because pooled connections may belong to an old network path.
    func dropConnections() async

    /// Restarts the stalled transfers to an endpoint. Called when a path is found again, because packets that were sent
    /// without a path are lost. The calls of ``send(_:)`` continue.
    ///
    /// A transfer is restarted while it connects. It is also restarted if the server has acknowledged no part of the
    /// request and the request may be sent twice.
    func restartStalled(to endpoint: Endpoint)

    /// Returns whether the certificate of an `https` URL's server is validated.
    func validatesServer(of url: String) -> Bool
}

extension AttemptSender {
    package var session: SessionManager? { nil }

    package func restartStalled(to endpoint: Endpoint) {}

    package func validatesServer(of url: String) -> Bool { true }
}
