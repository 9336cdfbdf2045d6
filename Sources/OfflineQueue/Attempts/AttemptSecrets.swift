internal import NetwatchEventLoop

/// The secrets that credentials, the session and its adapter added to an attempt.
///
/// The senders record them before the attempt is sent. An attempt that is sent twice, because its credential was
/// refreshed, has the secrets of both. The outcome itself is not changed before it has been classified: rules for the
/// response are evaluated for what the server sent.
package final class AttemptSecrets: Sendable {
    private struct State {
        var secrets: Set<Redactor.Secret> = []
        var isBodyEncoded = false
    }

    private let state = Lock(State())

    func add(_ secrets: Set<Redactor.Secret>) {
        state.withLock { $0.secrets.formUnion(secrets) }
    }

    /// Records that the response's body has a content coding, which nothing decodes.
    func recordEncodedBody() {
        state.withLock { $0.isBodyEncoded = true }
    }

    /// Removes the secrets that were recorded until now.
    var redactor: Redactor {
        let state = state.withLock { $0 }
        return state.secrets.isEmpty ? .none : Redactor(state.secrets, isBodyEncoded: state.isBodyEncoded)
    }
}
