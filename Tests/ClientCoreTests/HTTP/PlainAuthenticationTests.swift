internal import Foundation
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

/// The schemes that a session uses over plain http.
@Suite struct PlainAuthenticationTests {
    private let authentication = PlainAuthentication()
    private let url = URL(string: "http://a.example/")!

    private func permitted(_ url: URL, relayable: Bool = false) -> TransferCredentials.Schemes? {
        let credentials = TransferCredentials(user: "u", password: "p")
        return authentication.permitted(credentials, for: url, relayable: relayable)?.schemes
    }

    @Test func `an origin that has offered Digest does not get Basic any more`() {
        #expect(permitted(url) == [.basic, .digest])
        authentication.note([.basic, .digest], offeredBy: url)
        #expect(permitted(url) == [.digest])
        #expect(permitted(URL(string: "http://a.example:8080/")!) == [.basic, .digest])
        #expect(permitted(URL(string: "https://a.example/")!) == .all)
    }

    @Test func `an origin that has offered a scheme that may not be used still gets Basic`() {
        authentication.note([.basic, .negotiate], offeredBy: url)
        #expect(permitted(url) == [.basic, .digest])
        #expect(permitted(url, relayable: true) == [.digest, .ntlm, .negotiate])
    }

    @Test(arguments: [
        ("https://a.example/x", "http://A.example/", true),
        ("https://a.example:443/", "http://a.example:80/", true),
        ("https://b.example/", "http://a.example/", false),
        ("https://a.example:8443/", "http://a.example/", false),
        ("https://a.example/", "http://a.example:8080/", false),
        ("http://a.example/", "https://a.example/", false),
        ("https://a.example/", "https://a.example/", false),
    ])
    func `a URL is the upgrade of another one only for the same host and the default ports`(
        target: String,
        source: String,
        isUpgrade: Bool
    ) throws {
        let (target, source) = (try #require(URL(string: target)), try #require(URL(string: source)))
        #expect(target.isUpgrade(of: source) == isUpgrade)
    }
}
