internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable internal import OfflineQueue

/// The values that are removed from outcomes before they are stored.
@Suite struct AddedSecretsTests {
    private let attempt = Attempt(
        id: "a",
        method: "POST",
        url: "https://a.example/?page=first-page",
        headers: [
            .init(name: "x-tag", value: "tag-one"), .init(name: "x-tag", value: "tag-two"),
            .init(name: "x-shop", value: "berlin"),
        ],
        body: .none,
        mayBeSentTwice: true
    )

    /// Returns the secrets in a request that an adapter has created from the attempt.
    private func secrets(_ adapt: (inout URLRequest) -> Void) throws -> AddedSecrets {
        var request = try #require(URLRequest(attempt))
        adapt(&request)
        let fields = (request.allHTTPHeaderFields ?? [:]).map { QueueRequest.Header(name: $0, value: $1) }
        return AddedSecrets(url: try #require(request.url).absoluteString, headers: fields, besides: attempt)
    }

    @Test func `a repeated field of the request is no secret`() throws {
        let joined = try #require(URLRequest(attempt)?.value(forHTTPHeaderField: "x-tag"))
        #expect(joined.contains("tag-one") && joined.contains("tag-two"))
        let text = "\(joined) berlin first-page token-value"
        let secrets = try secrets { $0.setValue("token-value", forHTTPHeaderField: "X-Token") }
        let outcome = secrets.removed(from: .status(404, [("X-Echo", text)]))
        guard case .response(_, let headers, _, _) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(headers.map { $0.1 } == ["\(joined) berlin first-page REDACTED"])
    }

    @Test func `a secret is removed from the reason of a withheld attempt before it is cut`() throws {
        let secrets = try secrets { $0.setValue("token-value", forHTTPHeaderField: "X-Token") }
        for padding in [0, WithheldReason.maximumReasonLength - 4] {
            let reason = WithheldReason(.retry, String(repeating: "x", count: padding) + "token-value")
            guard case .withheld(let withheld) = secrets.removed(from: .withheld(reason)) else {
                Issue.record("the attempt is withheld")
                return
            }
            #expect(!withheld.reason.contains("toke") && withheld.reason.contains("REDA"))
            #expect(withheld.reason.count <= WithheldReason.maximumReasonLength)
        }
    }

    @Test func `a secret that contains another secret is removed completely`() throws {
        let secrets = try secrets {
            $0.setValue("token-value", forHTTPHeaderField: "X-Token")
            $0.setValue("token-value-and-more", forHTTPHeaderField: "X-Longer")
        }
        let outcome = secrets.removed(from: .status(404, [("X-Echo", "token-value-and-more token-value")]))
        guard case .response(_, let headers, _, _) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(headers.map { $0.1 } == ["REDACTED REDACTED"])
    }
}
