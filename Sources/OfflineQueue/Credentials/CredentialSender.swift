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
        } catch let fault as CredentialFault {
            return .withheld(fault)
        } catch {
            // 42 is CURLE_ABORTED_BY_CALLBACK: the queue has cancelled the attempt before anything was sent.
            return .failure(AttemptFailure(code: 42, phase: .resolve, message: "cancelled"))
        }
    }

    /// Sends the attempt, and once more after a 401 if the credential has changed since.
    private func send(_ attempt: Attempt, with name: String) async throws -> AttemptOutcome {
        let first = try await resolver.authorize(attempt, with: name, session)
        let outcome = await send(first, of: attempt, with: name)
        guard outcome.isUnauthorized,
            let second = try await resolver.renew(attempt, with: name, after: first, session)
        else { return outcome }
        return await send(second, of: attempt, with: name)
    }

    private func send(
        _ authorized: CredentialResolver.Authorized,
        of attempt: Attempt,
        with name: String
    ) async -> AttemptOutcome {
        let outcome = await sender.send(authorized.attempt)
        if authorized.generation > 0, outcome.acceptsCredential {
            await resolver.accepted(authorized, of: name)
        }
        return outcome.redacted(for: authorized.attempt, of: attempt)
    }

    func dropConnections() async { await sender.dropConnections() }

    func restartStalled(to host: String) { sender.restartStalled(to: host) }

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

    /// Returns the outcome without the secrets of an attempt. A redirect, for example, may repeat the query of the URL,
    /// and header fields and error messages are stored.
    fileprivate func redacted(for authorized: Attempt, of original: Attempt) -> AttemptOutcome {
        let secrets = authorized.secrets(besides: original)
        guard !secrets.isEmpty else { return self }
        func redact(_ text: String) -> String {
            secrets.reduce(text) { $0.replacing($1, with: "REDACTED") }
        }
        switch self {
        case .response(let status, let headers, let body, let isTruncated):
            let headers = headers.map { ($0.0, redact($0.1)) }
            return .response(status: status, headers: headers, body: body, isTruncated: isTruncated)
        case .failure(let failure): return .failure(failure.withMessage(redact(failure.message)))
        case .withheld, .unsendable: return self
        }
    }
}

extension Attempt {
    /// The values that were added to an attempt, the longest first. Values of less than 4 bytes are left out: they
    /// would occur in unrelated text.
    fileprivate func secrets(besides original: Attempt) -> [String] {
        let known = Set(original.headers)
        let fields = headers.filter {
            !known.contains($0) && !Self.publicFields.contains($0.name.lowercased())
        }
        .flatMap { field in
            // The credentials follow the scheme: `Bearer TOKEN`.
            let isAuthorization = field.name.lowercased().hasSuffix("authorization")
            let parts = isAuthorization ? field.value.split(separator: " ").map(String.init) : []
            return [field.value] + parts + parts.flatMap(Self.basicSecrets)
        }
        let items = Set(original.queryItems)
        let values = queryItems.filter { !items.contains($0) }.compactMap { item in
            item.firstIndex(of: "=").map { String(item[item.index(after: $0)...]) }
        }
        let schemes: Set = ["Bearer", "Basic"]
        return (fields + values + values.compactMap(\.removingPercentEncoding))
            .filter { $0.utf8.count >= 4 && !schemes.contains($0) }
            .sorted { $0.utf8.count > $1.utf8.count }
    }

    /// Returns the password of RFC 7617's `user:password` in Base64, and both together; nothing for other text.
    private static func basicSecrets(_ encoded: String) -> [String] {
        guard let data = Data(base64Encoded: encoded), let text = String(data: data, encoding: .utf8),
            let colon = text.firstIndex(of: ":")
        else { return [] }
        let password = String(text[text.index(after: colon)...])
        return [
            text, password, password.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? password,
        ]
    }

    /// Fields that contain no secret. Their values occur in responses and would be replaced there.
    private static let publicFields: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "content-encoding",
        "content-language", "content-type", "date", "from", "idempotency-key", "if-match",
        "if-modified-since",
        "if-none-match", "if-range", "if-unmodified-since", "origin", "pragma", "prefer", "range", "referer",
        "traceparent", "user-agent", "x-correlation-id", "x-request-id",
    ]

    private var queryItems: [Substring] {
        let base = url.prefix { $0 != "#" }
        guard let mark = base.firstIndex(of: "?") else { return [] }
        return base[base.index(after: mark)...].split(separator: "&")
    }
}
