/// Performs transfers. An adapter implements it with the HTTP client.
package protocol AttemptSender: Sendable {
    /// Performs the transfer and returns its result. When the task is cancelled, it ends soon, with `CURLcode` 42.
    func send(_ attempt: Attempt) async -> AttemptOutcome

    /// Makes later attempts use new connections, because pooled ones may belong to an old network path.
    func dropConnections() async

    /// Repeats stalled attempts to the host within ``send(_:)``, because their packets were lost with the path. These
    /// are attempts that are connecting, and attempts that are safe to repeat and of which the server acknowledged
    /// nothing.
    func restartStalled(to host: String)

    /// Returns whether the server of an `https` URL must prove that it is the URL's host.
    func validatesServer(of url: String) -> Bool
}

extension AttemptSender {
    package func restartStalled(to host: String) {}

    package func validatesServer(of url: String) -> Bool { true }
}
