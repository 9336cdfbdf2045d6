internal import ClientTestProcess
internal import Foundation
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Servers that redirect or challenge a request without end.
@Suite(.timeLimit(.minutes(5))) struct HostileLoopTests {
    private static func redirect(
        _ name: String,
        _ error: URLError.Code?,
        _ code: Int32? = nil,
        to location: @escaping @Sendable (String) -> String
    ) -> HostileCase {
        HostileCase(name, error, code) { request in
            .respond(status: 302, headers: [.init("Location", location(request.target))])
        }
    }

    private static var redirects: [HostileCase] {
        [
            redirect("to itself", .httpTooManyRedirects) { _ in "/hostile" },
            redirect("ever on", .httpTooManyRedirects) { "\($0)x" },
            redirect("to 10,000 bytes", .httpTooManyRedirects) { _ in
                "/" + String(repeating: "x", count: 10_000)
            },
            redirect("to ever more bytes", .cannotParseResponse, 100) {
                $0 + String(repeating: "x", count: 30_000)
            },
            redirect("to a file", .unsupportedURL) { _ in "file:///etc/passwd" },
            redirect("to another protocol", .unsupportedURL) { _ in "ftp://127.0.0.1/" },
            redirect("to no host", .badServerResponse) { _ in "http:///x" },
            redirect("to a server that is not there", .cannotConnectToHost, 7) { _ in "https://127.0.0.1:1/" }
                .with { $0.phase = .connect },
            redirect("to nowhere", nil) { _ in "" }.with { $0.status = 302 },
            HostileCase(
                "with an endless body",
                .httpTooManyRedirects,
                nil,
                "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n",
                then: .flood([UInt8](repeating: 0x78, count: 16384))
            ),
        ]
    }

    @Test(arguments: redirects) func `a redirect loop ends with an error`(hostile: HostileCase) async throws {
        try await hostile.check()
    }

    private static func challenge(_ name: String, _ texts: String...) -> HostileCase {
        HostileCase(name, nil, nil, status: 401) { request in
            let texts = texts.map { $0.replacing("NONCE", with: "n\(request.number)") }
            return .respond(status: 401, headers: texts.map { .init("WWW-Authenticate", $0) })
        }.with { $0.hasCredential = true }
    }

    private static var challenges: [HostileCase] {
        [
            challenge("Basic", "Basic realm=\"x\""),
            challenge("Digest", "Digest realm=\"x\", nonce=\"NONCE\", qop=\"auth\""),
            challenge(
                "Digest with an unknown algorithm",
                "Digest realm=\"x\", nonce=\"NONCE\", algorithm=NOPE, qop=\"no\""
            ),
            challenge(
                "Digest with a realm of 50,000 bytes",
                "Digest realm=\"\(String(repeating: "x", count: 50_000))\", nonce=\"n\""
            ),
            challenge("NTLM that leads nowhere", "Negotiate", "NTLM"),
            challenge(
                "nonces that are always stale",
                "Digest realm=\"x\", nonce=\"NONCE\", qop=\"auth\", stale=true"
            )
            .with {
                ($0.error, $0.code, $0.phase, $0.status) = (.userAuthenticationRequired, 67, .response, nil)
            },
        ]
    }

    @Test(arguments: challenges) func `a challenge loop ends`(hostile: HostileCase) async throws {
        try await hostile.check()
    }
}
