package import Foundation

/// The result of one attempt.
package enum AttemptOutcome: Sendable {
    /// The server responded. `isTruncated` is whether `body` is incomplete, because it exceeded a limit or the
    /// connection ended.
    case response(status: Int, headers: [(String, String)], body: Data, isTruncated: Bool)
    /// The transfer failed without a usable response. If only the body of a response was cut, by a limit or by the end
    /// of the connection, the outcome is `response`.
    case failure(AttemptFailure)
    /// Nothing was sent, because the request's credential could not be added, or because the adapter of the queue's
    /// session failed or did not return.
    case withheld(WithheldReason)
    /// Nothing was sent, because the stored body is missing or differs from the accepted one.
    case unsendable(reason: String)

    /// The outcome of an attempt that was not sent. After the request was claimed, the path changed and must be probed
    /// for captive portals first, or a portal was found, or a constraint of the request was lost.
    static let unsent = AttemptOutcome.failure(.unsent)

    /// The outcome of an attempt after a 401 that may be a portal's: the path or a constraint changed, as for
    /// ``unsent``. The server has not executed the request, so the attempt counts as unsent.
    static let notRefreshed = AttemptOutcome.failure(.notRefreshed)

    /// The outcome of an attempt that received a 401: the path or a constraint changed, as for ``unsent``, while the
    /// credential was refreshed. The server has not executed the request, so the attempt counts as unsent.
    static let notSentAgain = AttemptOutcome.failure(.notSentAgain)

    /// Returns the outcome with `REDACTED` in place of the secrets in messages. A response is not changed, because rules
    /// may depend on it; see ``AttemptSecrets``.
    func redacted(by redactor: Redactor) -> AttemptOutcome {
        switch self {
        case .failure(let failure): .failure(failure.withMessage(redactor.text(failure.message)))
        case .withheld(let reason): .withheld(reason.mapText(redactor.text))
        case .response, .unsendable: self
        }
    }

    /// Whether the outcome is ``unsent``.
    var isUnsent: Bool {
        if case .failure(let failure) = self { failure == .unsent } else { false }
    }
}

extension AttemptFailure {
    fileprivate static let unsent = aborted("the path or a constraint changed before the request was sent")
    fileprivate static let notRefreshed = aborted(
        "HTTP 401; the credential is not refreshed, because the path or a constraint changed"
    )
    fileprivate static let notSentAgain = aborted(
        "HTTP 401; the request is not sent again, because the path or a constraint changed during the refresh of the "
            + "credential"
    )

    /// 42 is CURLE_ABORTED_BY_CALLBACK: the queue itself ended the attempt.
    private static func aborted(_ message: String) -> AttemptFailure {
        AttemptFailure(code: 42, phase: .resolve, message: message)
    }
}
