internal import ClientCore
internal import Foundation

/// Adds the credential of each attempt before another sender sends it.
struct CredentialSender: AttemptSender {
    let sender: any AttemptSender
    let resolver: CredentialResolver

    var session: SessionManager? { sender.session }

    func send(_ attempt: Attempt) async -> AttemptOutcome {
        guard let name = attempt.credential else { return await sender.send(attempt) }
        do {
            return try await send(attempt, with: name)
        } catch let reason as WithheldReason {
            return .withheld(reason)
        } catch {
            return .failure(.cancelledUnsent)
        }
    }

    /// Sends the attempt, and once more after a 401 if the credential has changed since.
    private func send(_ attempt: Attempt, with name: String) async throws -> AttemptOutcome {
        let first = try await resolver.authorize(attempt, with: name, session)
        let outcome = await send(first, of: attempt, with: name)
        guard outcome.isUnauthorized else { return outcome }
        // The response may be a portal's, for which the credential must not be refreshed.
        guard await attempt.mayStillBeSent() else { return .notRefreshed }
        guard let second = try await resolver.renew(attempt, with: name, after: first, session) else {
            return outcome
        }
        let last = await send(second, of: attempt, with: name)
        return last.isUnsent ? .notSentAgain : last
    }

    private func send(
        _ authorized: CredentialResolver.Authorized,
        of attempt: Attempt,
        with name: String
    ) async -> AttemptOutcome {
        let added = authorized.attempt
        let secrets = AddedSecrets(url: added.url, headers: added.headers, besides: attempt, by: .credential)
        attempt.secrets.add(secrets.values)
        let outcome = await sender.send(added)
        if authorized.generation > 0, outcome.acceptsCredential {
            await resolver.accepted(authorized, of: name)
        }
        return outcome
    }

    func dropConnections() async { await sender.dropConnections() }

    func restartStalled(to endpoint: Endpoint) { sender.restartStalled(to: endpoint) }

    func validatesServer(of url: String) -> Bool { sender.validatesServer(of: url) }
}

extension AttemptOutcome {
    /// Whether the server responded, and not with 401 or 407.
    fileprivate var acceptsCredential: Bool {
        if case .response(let status, _, _, _) = self { status != 401 && status != 407 } else { false }
    }

    fileprivate var isUnauthorized: Bool {
        if case .response(401, _, _, _) = self { true } else { false }
    }
}
