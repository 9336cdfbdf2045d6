internal import Foundation
internal import Glibc
internal import OfflineQueue
internal import Testing

// Expected responses, portals and responses that are not HTTP.

extension FailureTableTests {
    private static let odd = Expected(statuses: [200...204, 404...404], contentType: "application/json")
    private static let json = [("content-type", "application/json; charset=utf-8")]

    @Test(arguments: [200, 204, 404])
    func `an expected status is a delivery, even a client error`(status: Int) throws {
        let request = try context(expectation: Self.odd)
        #expect(classify(status, Self.json, of: request).verdict == .delivered(status: status))
    }

    @Test func `an unexpected 2xx is retried, or held if a retry may do harm`() throws {
        let found = classify(206, Self.json, of: try context(expectation: Self.odd))
        #expect(found.verdict == Self.counted && found.lane == .failure)
        #expect(found.detail?.contains("206") == true && found.detail?.contains("status=200-204") == true)
        #expect(
            classify(200, of: try context(expectation: Self.odd)).verdict == Self.counted,
            "without a type"
        )
        let once = try context(mayBeSentTwice: false, hasKey: false, expectation: Self.odd)
        #expect(classify(200, of: once).verdict == .held(.ambiguous))
    }

    @Test func `a 2xx with a truncated body is not retried because of a missing content type`() throws {
        let failure = AttemptFailure(code: 18, phase: .response, status: 200, message: "cut")
        let request = try context(expectation: Self.odd)
        let classification = FailureTable.classify(.failure(failure), of: request, now: start)
        #expect(classification.verdict == .delivered(status: 200))
    }

    @Test(arguments: [301, 302, 307, 511])
    func `an expected status is delivered even if it resembles a portal's`(status: Int) throws {
        let request = try context("http://a.example", expectation: Expected(statuses: [300...599]))
        #expect(classify(status, of: request).verdict == .delivered(status: status))
    }

    @Test func `an HTML page instead of JSON counts as a portal without TLS`() throws {
        let request = try context("http://a.example", expectation: Self.odd)
        let classification = classify(200, Self.html, of: request)
        #expect(classification.verdict == Self.free && classification.lane == .foreign)
    }

    @Test func `an unsendable request is dead and does not affect its lane`() throws {
        let classification = FailureTable.classify(.unsendable(reason: "gone"), of: try context(), now: start)
        #expect(classification.verdict == .dead(.bodyLost, reason: "gone") && classification.lane == .none)
    }

    /// Once the head of a response has arrived, its status decides, regardless of how the transfer failed.
    @Test(
        arguments: [CInt(8), 16, 18, 23, 28, 52, 55, 56, 61, 63, 65, 80, 92, 95, 100, 9999],
        [201, 404, 500, 503]
    )
    func `a status that arrived before the failure decides`(code: CInt, status: Int) throws {
        let failure = AttemptFailure(code: code, phase: .response, status: status, message: "message")
        for hasKey in [true, false] {
            let request = try context(mayBeSentTwice: hasKey, hasKey: hasKey)
            let classification = FailureTable.classify(.failure(failure), of: request, now: start)
            #expect(classification.verdict == classify(status, of: request).verdict)
        }
    }

    /// Tries every libcurl code as a failure before the request was sent. Such a failure is at most counted as an
    /// attempt.
    @Test(arguments: [AttemptFailure.Phase.resolve, .connect, .tls])
    func `a failure before sending never holds a request as ambiguous`(phase: AttemptFailure.Phase) throws {
        let request = try context(mayBeSentTwice: false, hasKey: false)
        for code in Array(FailureTable.curlClasses.keys) + [28, 35, 9999] {
            let failure = AttemptFailure(code: code, phase: phase, message: "message")
            let classification = FailureTable.classify(.failure(failure), of: request, now: start)
            // Errors in a received body occur only after the request was sent.
            if FailureTable.curlClasses[code] == .responded { continue }
            #expect(classification.verdict != .held(.ambiguous), "\(code)")
        }
    }

    struct PortalRow: Sendable {
        let url: String
        let status: Int
        var headers: [(String, String)] = []
        var accept: String?
        let isPortal: Bool
    }

    private static let html = [("Content-Type", "text/html; charset=utf-8")]

    @Test(arguments: [
        PortalRow(url: "https://a.example", status: 511, isPortal: true),
        PortalRow(
            url: "https://a.example",
            status: 302,
            headers: [("location", "https://portal/")],
            isPortal: false
        ),
        PortalRow(
            url: "https://a.example",
            status: 307,
            headers: [("location", "//portal/")],
            isPortal: false
        ),
        PortalRow(
            url: "https://a.example",
            status: 308,
            headers: [("location", "/other")],
            isPortal: false
        ),
        PortalRow(
            url: "https://a.example/x",
            status: 308,
            headers: [("location", "https://a.example:443/y")],
            isPortal: false
        ),
        PortalRow(url: "http://a.example", status: 302, headers: [("location", "/login")], isPortal: true),
        PortalRow(
            url: "http://a.example",
            status: 200,
            headers: html,
            accept: "application/json",
            isPortal: true
        ),
        PortalRow(
            url: "http://a.example",
            status: 404,
            headers: html,
            accept: "application/json",
            isPortal: true
        ),
        PortalRow(url: "http://a.example", status: 200, headers: html, accept: "*/*", isPortal: false),
        PortalRow(url: "http://a.example", status: 200, headers: html, isPortal: false),
        PortalRow(
            url: "https://a.example",
            status: 200,
            headers: html,
            accept: "application/json",
            isPortal: false
        ),
        PortalRow(url: "http://127.0.0.1:8080", status: 511, isPortal: false),
        PortalRow(url: "http://[::1]", status: 302, headers: [("location", "/login")], isPortal: false),
        PortalRow(
            url: "http://api.localhost:8080",
            status: 501,
            headers: html,
            accept: "application/json",
            isPortal: false
        ),
    ])
    func `a portal's response makes the request neither delivered nor dead`(row: PortalRow) throws {
        let classification = classify(row.status, row.headers, of: try context(row.url, accept: row.accept))
        #expect((classification.verdict == Self.free && classification.lane == .foreign) == row.isPortal)
    }

    @Test(arguments: [
        AttemptOutcome.status(303, [("Location", "/done")]), .status(302, [("Location", "http://portal/")]),
        .status(200, [("Content-Type", "text/html")]),
    ])
    func `a request that may have been applied is held after a possible portal response`(
        outcome: AttemptOutcome
    ) {
        let context = AttemptContext(
            origin: Origin(scheme: "http", host: "example.com", port: 80),
            mayBeSentTwice: false,
            hasKey: false,
            gateIsDown: false,
            accept: "application/json"
        )
        #expect(FailureTable.classify(outcome, of: context, now: start).verdict == .held(.ambiguous))
    }

    @Test func `an error page and a redirect of a server on this machine end the request`() throws {
        let context = try context("http://localhost:8000/a", accept: "application/json")
        #expect(classify(501, Self.html, of: context).verdict == .dead(.refused, reason: "HTTP 501"))
        let reason = "HTTP 301, a redirect to http://localhost:8000/a/"
        let redirect = [("Location", "http://localhost:8000/a/")]
        #expect(classify(301, redirect, of: context).verdict == .dead(.redirected, reason: reason))
    }

    private static let recognized = Expected(rules: [.header("X-Server", value: "real")])
    private static let real = [("X-Server", "real")]

    @Test(arguments: [200, 201, 204, 302, 401, 403, 404, 407, 410, 429, 500, 503, 511])
    func `without TLS, a response that does not meet a rule is never a delivery and never final`(status: Int)
        throws
    {
        let request = try context("http://a.example", expectation: Self.recognized)
        let classification = classify(status, [("Retry-After", "9")], of: request)
        #expect(classification.verdict == Self.free && classification.lane == .foreign)
        #expect(
            classification.detail?.contains("header=X-Server=real") == true,
            "\(classification.detail ?? "")"
        )
        let once = try context(
            "http://a.example",
            mayBeSentTwice: false,
            hasKey: false,
            expectation: Self.recognized
        )
        let isUntouched = [429, 511].contains(status)
        #expect(classify(status, of: once).verdict == (isUntouched ? Self.free : .held(.ambiguous)))
    }

    @Test func `a response that meets the rules is the server's, also without TLS`() throws {
        let request = try context("http://a.example", accept: "text/plain", expectation: Self.recognized)
        #expect(classify(200, Self.real + Self.html, of: request).verdict == .delivered(status: 200))
        #expect(classify(404, Self.real + Self.html, of: request).verdict == .dead(reason: "HTTP 404"))
        let redirect = Self.real + [("Location", "/b")]
        #expect(
            classify(302, redirect, of: request).verdict
                == .dead(.redirected, reason: "HTTP 302, a redirect to /b")
        )
        #expect(classify(511, Self.real, of: request).verdict == Self.free)
    }

    @Test func `over HTTPS a response that does not meet a rule is the server's`() throws {
        let request = try context("https://a.example", expectation: Self.recognized)
        #expect(classify(200, of: request).verdict == Self.counted)
        #expect(classify(404, of: request).verdict == .dead(reason: "HTTP 404"))
        var unproven = request
        unproven.validatesServer = false
        #expect(classify(404, of: unproven).verdict == Self.free)
    }

    @Test(arguments: ["http://a.example", "https://a.example"])
    func `a status without its header fields does not meet a rule`(url: String) throws {
        let failure = AttemptFailure(code: 56, phase: .response, status: 200, message: "reset")
        let request = try context(url, expectation: Self.recognized)
        let verdict = FailureTable.classify(.failure(failure), of: request, now: start).verdict
        #expect(verdict == (url.hasPrefix("https") ? Self.counted : Self.free))
    }
}
