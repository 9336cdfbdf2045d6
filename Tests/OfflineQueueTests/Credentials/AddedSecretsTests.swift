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

    /// Returns the secrets in a request that was created from the attempt.
    private func secrets(
        by source: AddedSecrets.Source = .session,
        _ adapt: (inout URLRequest) -> Void
    ) throws -> Set<Redactor.Secret> {
        var request = try #require(URLRequest(attempt))
        adapt(&request)
        let fields = (request.allHTTPHeaderFields ?? [:]).map { QueueRequest.Header(name: $0, value: $1) }
        let url = try #require(request.url).absoluteString
        return AddedSecrets(url: url, headers: fields, besides: attempt, by: source).values
    }

    @Test func `a repeated field of the request is no secret`() throws {
        let joined = try #require(URLRequest(attempt)?.value(forHTTPHeaderField: "x-tag"))
        #expect(joined.contains("tag-one") && joined.contains("tag-two"))
        let text = "\(joined) berlin first-page token-value"
        let redactor = Redactor(try secrets { $0.setValue("token-value", forHTTPHeaderField: "X-Token") })
        #expect(redactor.text(text) == "\(joined) berlin first-page REDACTED")
    }

    @Test func `a secret is removed from the reason of a withheld attempt before it is cut`() throws {
        let redactor = Redactor(try secrets { $0.setValue("token-value", forHTTPHeaderField: "X-Token") })
        for padding in [0, WithheldReason.maximumReasonLength - 4] {
            let reason = WithheldReason(.retry, String(repeating: "x", count: padding) + "token-value")
            guard case .withheld(let withheld) = AttemptOutcome.withheld(reason).redacted(by: redactor) else {
                Issue.record("the attempt is withheld")
                return
            }
            #expect(!withheld.reason.contains("toke") && withheld.reason.contains("REDA"))
            #expect(withheld.reason.count <= WithheldReason.maximumReasonLength)
        }
    }

    @Test func `a secret that contains another secret is removed completely`() throws {
        let redactor = Redactor(
            try secrets {
                $0.setValue("token-value", forHTTPHeaderField: "X-Token")
                $0.setValue("token-value-and-more", forHTTPHeaderField: "X-Longer")
            }
        )
        #expect(redactor.text("token-value-and-more token-value") == "REDACTED REDACTED")
    }

    @Test func `the parts of fields and of the URL are secrets on their own`() throws {
        func values(_ adapt: (inout URLRequest) -> Void) throws -> Set<String> {
            Set(try secrets(adapt).map(\.value))
        }
        let bearer = try values { $0.setValue("Bearer tok", forHTTPHeaderField: "Authorization") }
        #expect(bearer == ["Bearer tok", "tok"])
        let basic = try values { $0.setValue("Basic dXNlcjpwdw==", forHTTPHeaderField: "Authorization") }
        #expect(basic == ["Basic dXNlcjpwdw==", "dXNlcjpwdw==", "user:pw", "pw"])
        let cookies = try values { $0.setValue("sid=one; lang=de", forHTTPHeaderField: "Cookie") }
        #expect(cookies == ["sid=one; lang=de", "one", "de"])
        let url = try values {
            $0.url = URL(string: "https://u:p%2Fw@a.example/bot%3Ax/?page=first-page&k=a%2Fb#f")
        }
        #expect(url == ["u:p/w", "p/w", "bot%3Ax", "bot:x", "a%2Fb", "a/b"])
        let unchanged = try values { $0.setValue("text/plain", forHTTPHeaderField: "Accept") }
        #expect(unchanged.isEmpty)
    }

    @Test func `everything from a credential is certainly secret, and what has a secret name`() throws {
        func certain(by source: AddedSecrets.Source) throws -> Set<String> {
            let secrets = try secrets(by: source) {
                $0.setValue("2", forHTTPHeaderField: "X-Version")
                $0.setValue("key", forHTTPHeaderField: "X-Api-Key")
                $0.url = URL(string: "https://a.example/new?page=first-page&sid=s&v=1")
            }
            return Set(secrets.filter(\.isCertain).map(\.value))
        }
        #expect(try certain(by: .credential) == ["2", "key", "s", "1"])
        #expect(try certain(by: .session) == ["key", "s"])
    }
}
