internal import Foundation
internal import NetwatchEventLoop
internal import Testing

@testable internal import OfflineQueue

/// The limit of refreshes, at times that the test chooses.
@Suite struct CredentialResolverTests {
    @Test func `refreshes are limited if the server rejects every value`() async throws {
        let token = TestToken("x")
        let time = Lock(ContinuousClock.now)
        // The provider responds at once, but on a busy machine its task may start late.
        let resolver = CredentialResolver(timeout: .seconds(600), maximumWait: .seconds(300)) {
            time.withLock { $0 }
        }
        let credential = try QueueCredential(
            origins: ["https://a.example"],
            refresh: { token.refresh(to: "x") },
            value: { .bearer(token.value) }
        )
        await resolver.register(credential, as: "token")
        let attempt = Attempt(
            id: "a",
            method: "GET",
            url: "https://a.example/",
            headers: [],
            body: .none,
            mayBeSentTwice: true,
            credential: "token"
        )
        func reject() async throws -> Bool {
            let rejected = try await resolver.authorize(attempt, with: "token", nil)
            return try await resolver.renew(attempt, with: "token", after: rejected, nil) != nil
        }
        for number in 0..<12 { #expect(try await reject() == (number < 5), "\(number)") }
        #expect(token.refreshes == 5)
        time.withLock { $0 += .seconds(31) }
        #expect(try await reject() && token.refreshes == 6)
    }
}
