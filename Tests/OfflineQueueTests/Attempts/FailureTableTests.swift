internal import Foundation
internal import Glibc
internal import OfflineQueue
internal import Testing

@Suite struct FailureTableTests {
    struct CurlRow: Sendable, CustomTestStringConvertible {
        let code: CInt
        let phase: AttemptFailure.Phase
        var errno: CInt = 0
        let verdict: Verdict
        let lane: LaneEffect

        var testDescription: String { "curl \(code) in \(phase), errno \(errno)" }
    }

    private static func rows(
        _ codes: [CInt],
        _ phase: AttemptFailure.Phase,
        _ verdict: Verdict,
        _ lane: LaneEffect,
        errno: CInt = 0
    ) -> [CurlRow] {
        codes.map { CurlRow(code: $0, phase: phase, errno: errno, verdict: verdict, lane: lane) }
    }

    static let counted = Verdict.retry(countsAsAttempt: true)
    static let free = Verdict.retry(countsAsAttempt: false)

    private static let curlRows: [CurlRow] = [
        rows([5, 6], .resolve, counted, .close),
        rows([7, 45, 89, 96, 97, 28], .connect, counted, .close),
        rows([35], .tls, counted, .close),
        rows([7], .connect, counted, .close, errno: ECONNREFUSED),
        rows([7], .connect, free, .shortage, errno: EADDRNOTAVAIL),
        // The connection that carried the request has ended, and libcurl could not open another one.
        rows([6, 7, 45], .request, counted, .failure),
        rows([28, 52, 55, 56, 16, 92, 95, 65, 80, 35], .request, counted, .failure),
        rows([8], .response, counted, .foreign),
        rows([18, 23, 61, 63, 100], .response, counted, .failure),
        rows([2, 26, 27, 99], .connect, free, .none),
        rows([42], .connect, free, .renewed),
        rows([60, 83, 90, 91], .tls, .held(.trust), .distrust),
        rows([1, 4, 48, 53, 54, 58, 59, 64, 66, 77, 82, 98, 101], .tls, .held(.configuration), .hold),
        rows([67, 94], .response, .held(.auth), .none),
        rows([3, 43, 49], .resolve, .dead(.unsendable, reason: "message"), .none),
        // A request that was sent is not unsendable, even if libcurl reports one of these codes.
        rows([3, 43, 49], .response, counted, .failure),
        rows([9999], .connect, counted, .close),
        rows([9999], .response, counted, .failure),
    ].flatMap { $0 }

    func context(
        _ url: String = "https://example.com",
        mayBeSentTwice: Bool = true,
        hasKey: Bool = true,
        gateIsDown: Bool = false,
        accept: String? = nil,
        expectation: Expected = .success,
        lastStatus: Int? = nil
    ) throws -> AttemptContext {
        AttemptContext(
            origin: try Origin(url: url),
            mayBeSentTwice: mayBeSentTwice,
            hasKey: hasKey,
            gateIsDown: gateIsDown,
            accept: accept,
            expectation: expectation,
            lastStatus: lastStatus
        )
    }

    func classify(
        _ status: Int,
        _ headers: [(String, String)] = [],
        of context: AttemptContext
    ) -> AttemptClassification {
        let outcome = AttemptOutcome.response(
            status: status,
            headers: headers,
            body: Data(),
            isTruncated: false
        )
        return FailureTable.classify(outcome, of: context, now: start)
    }

    @Test(arguments: curlRows)
    func `each failed transfer is classified by its table row`(row: CurlRow) throws {
        let failure = AttemptFailure(code: row.code, errno: row.errno, phase: row.phase, message: "message")
        let classification = FailureTable.classify(.failure(failure), of: try context(), now: start)
        #expect(classification.verdict == row.verdict)
        #expect(classification.lane == row.lane)
    }

    @Test func `every libcurl code in the failure table has a test row`() {
        #expect(Set(FailureTable.curlClasses.keys).isSubset(of: Set(Self.curlRows.map(\.code))))
    }

    @Test(arguments: [CInt(6), 7, 28, 52, 55, 56, 16, 92, 95, 8, 65, 80, 35, 18, 26, 42, 9999])
    func `a request without a key that may have been applied is not sent twice`(code: CInt) throws {
        let failure = AttemptFailure(code: code, phase: .request, message: "message")
        let request = try context(mayBeSentTwice: false, hasKey: false)
        #expect(
            FailureTable.classify(.failure(failure), of: request, now: start).verdict == .held(.ambiguous)
        )
    }

    @Test func `an unsent request is retried without a key too`() throws {
        let failure = AttemptFailure(code: 28, phase: .connect, message: "message")
        let request = try context(mayBeSentTwice: false, hasKey: false)
        #expect(FailureTable.classify(.failure(failure), of: request, now: start).verdict == Self.counted)
    }

    @Test func `a path failure does not count while the gate is down`() throws {
        let failure = AttemptFailure(code: 6, phase: .resolve, message: "message")
        let request = try context(gateIsDown: true)
        #expect(FailureTable.classify(.failure(failure), of: request, now: start).verdict == Self.free)
    }

    /// The gate of a name whose addresses are not known yet has the state of the network in general.
    @Test func `a refused connection counts although the gate is down`() throws {
        let failure = AttemptFailure(code: 7, errno: ECONNREFUSED, phase: .connect, message: "message")
        let classification = try classify(failure) { $0.gateIsDown = true }
        #expect(classification.verdict == Self.counted && classification.lane == .close)
    }

    @Test(arguments: [CInt(18), 56, 28, 92, 23, 61, 63, 100])
    func `a 2xx with a truncated body is delivered`(code: CInt) throws {
        let failure = AttemptFailure(code: code, phase: .response, status: 201, message: "message")
        let classification = FailureTable.classify(.failure(failure), of: try context(), now: start)
        #expect(classification.verdict == .delivered(status: 201))
    }

    @Test(arguments: [200, 201, 202, 204, 299])
    func `a 2xx status is delivered`(status: Int) throws {
        #expect(classify(status, of: try context()).verdict == .delivered(status: status))
    }

    /// The statuses of temporary failures. By RFC 9110 §15, an unknown status counts as the x00 status of its class,
    /// and a status above 599 counts as 500.
    private static let passingStatuses =
        [408, 421, 425, 429, 500, 502, 503, 504, 506, 507, 508, 509, 510]
        + Array(512...599) + [600, 777, 999]

    @Test(arguments: passingStatuses)
    func `a temporary status is retried`(status: Int) throws {
        #expect(classify(status, of: try context()).verdict == Self.counted)
    }

    @Test(arguments: [400, 403, 404, 405, 410, 413, 418, 422, 499, 501, 505])
    func `the status of a permanent error is final`(status: Int) throws {
        let classification = classify(status, of: try context())
        #expect(classification.verdict == .dead(reason: "HTTP \(status)"))
        #expect(classification.lane == .healthy)
    }

    @Test(arguments: [401, 407])
    func `a response that requires credentials holds the request`(status: Int) throws {
        #expect(classify(status, of: try context()).verdict == .held(.auth))
    }

    @Test(arguments: [
        ("https://user:secret@b.example:8443/new?token=t#f", "https://b.example:8443/new"),
        ("//b.example/new", "https://b.example/new"), ("/new?token=t", "/new"),
        ("http://b.example/\u{1}\u{7f}", "http://b.example/%01%7F"),
    ])
    func `a redirect of a validated server is final, and its target is reported without secrets`(
        location: String,
        target: String
    ) throws {
        let classification = classify(302, [("Location", location)], of: try context(mayBeSentTwice: false))
        #expect(classification.verdict == .dead(.redirected, reason: "HTTP 302, a redirect to \(target)"))
        #expect(classification.lane == .healthy)
        #expect(classify(308, of: try context()).verdict == .dead(.redirected, reason: "HTTP 308"))
        #expect(classify(399, of: try context()).verdict == .dead(.redirected, reason: "HTTP 399"))
    }

    @Test func `a redirect to another origin counts as a portal if the server is not validated`() throws {
        var request = try context()
        request.validatesServer = false
        let portal = classify(302, [("Location", "https://portal/?user=me")], of: request)
        #expect(portal.verdict == Self.free)
        let redirect = "HTTP 302, a redirect to https://portal/"
        let causes = "the response is probably from a captive portal, or the URL is wrong"
        #expect(portal.detail == "\(redirect); \(causes)")
        #expect(
            classify(302, [("Location", "/here")], of: request).verdict
                == .dead(.redirected, reason: "HTTP 302, a redirect to /here")
        )
    }

    @Test(arguments: [CInt(7), 6, 28, 55, 2], [AttemptFailure.Phase.resolve, .connect, .request])
    func `a local shortage neither counts as an attempt nor as a network failure`(
        code: CInt,
        phase: AttemptFailure.Phase
    ) throws {
        let failure = AttemptFailure(
            code: code,
            errno: EMFILE,
            phase: phase,
            message: "m",
            isLocalShortage: true
        )
        for hasKey in [true, false] {
            let request = try context(mayBeSentTwice: hasKey, hasKey: hasKey)
            let classification = FailureTable.classify(.failure(failure), of: request, now: start)
            #expect(classification.verdict == Self.free && classification.lane == .shortage)
        }
    }

    // MARK: Paths

    private static let pathErrors = [
        ENETUNREACH, EHOSTUNREACH, ENETDOWN, EINVAL, EACCES, EADDRNOTAVAIL, ETIMEDOUT,
    ]

    func classify(
        _ failure: AttemptFailure,
        mayBeSentTwice: Bool = true,
        _ change: (inout AttemptContext) -> Void = { _ in }
    ) throws -> AttemptClassification {
        var request = try context(mayBeSentTwice: mayBeSentTwice, hasKey: mayBeSentTwice)
        change(&request)
        return FailureTable.classify(.failure(failure), of: request, now: start)
    }

    @Test(arguments: pathErrors)
    func `the path lookup overrides the error number in every phase`(errno: CInt) throws {
        let phases: [(CInt, AttemptFailure.Phase)] = [
            (7, .connect), (35, .tls), (55, .request), (56, .response),
        ]
        for (code, phase) in phases {
            let failure = AttemptFailure(code: code, errno: errno, phase: phase, message: "m")
            for change: (inout AttemptContext) -> Void in [
                { $0.gateIsDown = true }, { $0.pathHasChanged = true },
            ] {
                let classification = try classify(failure, change)
                #expect(classification.verdict == Self.free && classification.lane == .reconnect, "\(code)")
            }
            let isShortage = errno == EADDRNOTAVAIL && phase < .request
            #expect(try classify(failure).verdict == (isShortage ? Self.free : Self.counted), "\(code)")
        }
    }

    private static let lostBindings: [(CInt, CInt)] = [(45, EADDRNOTAVAIL), (7, EADDRNOTAVAIL), (7, ENODEV)]

    @Test(arguments: lostBindings)
    func `a bound attempt without its address or interface reconnects`(code: CInt, errno: CInt) throws {
        let failure = AttemptFailure(code: code, errno: errno, phase: .connect, message: "m")
        for mayBeSentTwice in [true, false] {
            let bound = try classify(failure, mayBeSentTwice: mayBeSentTwice) { $0.isBound = true }
            #expect(bound.verdict == Self.free && bound.lane == .reconnect)
        }
        // An unbound socket fails with EADDRNOTAVAIL if all local ports are in use.
        #expect(try classify(failure).lane == (errno == EADDRNOTAVAIL ? .shortage : .close))
        let refused = AttemptFailure(code: 7, errno: ECONNREFUSED, phase: .connect, message: "m")
        #expect(try classify(refused) { $0.isBound = true }.verdict == Self.counted)
    }

    @Test func `a failed connection does not count shortly after the path was found`() throws {
        let unresolved = AttemptFailure(code: 7, errno: EHOSTUNREACH, phase: .connect, message: "m")
        let classification = try classify(unresolved) { $0.isReconnecting = true }
        #expect(classification.verdict == Self.free && classification.lane == .reconnect)
        let refused = AttemptFailure(code: 7, errno: ECONNREFUSED, phase: .connect, message: "m")
        #expect(try classify(refused) { $0.isReconnecting = true }.lane == .close, "the path works")
        let reset = AttemptFailure(code: 56, errno: ECONNRESET, phase: .response, message: "m")
        #expect(try classify(reset) { $0.isReconnecting = true }.verdict == Self.counted)
    }

    @Test func `a request that must not be sent twice is held when its path was lost after sending`() throws {
        for code in [CInt(42), 56] {
            let sent = AttemptFailure(code: code, phase: .response, bytesSent: 9, message: "m")
            let classification = try classify(sent, mayBeSentTwice: false) { $0.gateIsDown = true }
            #expect(classification.verdict == .held(.ambiguous))
            let unsent = AttemptFailure(code: code, phase: .connect, message: "m")
            #expect(try classify(unsent, mayBeSentTwice: false) { $0.gateIsDown = true }.verdict == Self.free)
        }
    }

    @Test(arguments: [true, false])
    func `a status that arrived before the attempt was aborted decides`(mayBeSentTwice: Bool) throws {
        let ended = AttemptFailure(code: 42, phase: .response, bytesSent: 9, status: 200, message: "m")
        let classification = try classify(ended, mayBeSentTwice: mayBeSentTwice) { $0.gateIsDown = true }
        #expect(classification.verdict == .delivered(status: 200))
    }

    @Test func `409 with a key is retried for ten minutes`() throws {
        var request = try context()
        request.conflictAge = .seconds(599)
        #expect(classify(409, of: request).verdict == Self.counted)
        request.conflictAge = .seconds(600)
        #expect(classify(409, of: request).verdict == .dead(.conflict, reason: "HTTP 409 for 10 minutes"))
        #expect(classify(409, of: request).lane == .healthy)
    }

    @Test func `409 is retried with a key and final without one`() throws {
        #expect(classify(409, of: try context()).verdict == Self.counted)
        #expect(classify(409, of: try context(hasKey: false)).verdict == .dead(reason: "HTTP 409"))
    }

    @Test(arguments: [429, 503])
    func `a throttling status closes the lane for the time in Retry-After`(status: Int) throws {
        #expect(classify(status, of: try context()).lane == .close)
        let named = classify(status, [("Retry-After", "120")], of: try context())
        #expect(named.lane == .closeFor(.seconds(120)))
    }

    @Test(arguments: [500, 502, 504, 507, 520, 521, 522, 523, 524])
    func `a request that must not be sent twice is held when the server may have applied it`(status: Int)
        throws
    {
        let request = try context(mayBeSentTwice: false, hasKey: false)
        let classification = classify(status, of: request)
        #expect(classification.verdict == .held(.ambiguous) && classification.lane == .failure)
        #expect(classification.status == status)
    }

    @Test func `a request that must not be sent twice is held after a 503, which a proxy may have sent`()
        throws
    {
        let classification = classify(
            503,
            [("Retry-After", "120")],
            of: try context(mayBeSentTwice: false, hasKey: false)
        )
        #expect(classification.verdict == .held(.ambiguous))
        #expect(classification.lane == .closeFor(.seconds(120)))
    }

    @Test(arguments: [408, 421, 425, 429])
    func `a request that the server reports as not applied is retried, even if it must not be sent twice`(
        status: Int
    ) throws {
        #expect(
            classify(status, of: try context(mayBeSentTwice: false, hasKey: false)).verdict == Self.counted
        )
    }

    @Test func `a misdirected request is repeated once immediately, then with backoff`() throws {
        #expect(classify(421, of: try context()).lane == .again)
        #expect(classify(421, of: try context(lastStatus: 500)).lane == .again)
        let second = classify(421, of: try context(lastStatus: 421))
        #expect(second.verdict == Self.counted && second.lane == .failure)
    }

    @Test func `422 is final even with a key, because the server matched the key to another request`() throws
    {
        #expect(classify(422, of: try context()).verdict == .dead(reason: "HTTP 422"))
    }

    // MARK: Requests that the server did not process or may still process

    @Test
    func `a request that the server reports as unprocessed is retried, even if it must not be sent twice`()
        throws
    {
        var failure = AttemptFailure(code: 52, phase: .response, bytesSent: 100, message: "refused")
        failure.isUnprocessed = true
        for mayBeSentTwice in [true, false] {
            let request = try context(mayBeSentTwice: mayBeSentTwice, hasKey: mayBeSentTwice)
            let classification = FailureTable.classify(.failure(failure), of: request, now: start)
            #expect(classification.verdict == Self.counted && classification.lane == .failure)
        }
    }

    @Test func `a timeout after sending delays the next attempt`() throws {
        var failure = AttemptFailure(code: 28, phase: .response, bytesSent: 100, message: "late")
        failure.overrun = .seconds(300)
        let classification = FailureTable.classify(.failure(failure), of: try context(), now: start)
        #expect(classification.verdict == Self.counted && classification.overrun == .seconds(300))
        let once = FailureTable.classify(
            .failure(failure),
            of: try context(mayBeSentTwice: false),
            now: start
        )
        #expect(once.verdict == .held(.ambiguous) && once.overrun == nil)
    }

    // MARK: Rules of the caller

    private static let retried = StatusRules(retry: [200...299, 401...401, 404...404, 409...409, 500...599])
    private static let ended = StatusRules(dead: [200...299, 401...401, 404...404, 421...421, 500...599])

    private static let ruled: [(status: Int, rules: [StatusRules], isOnce: Bool, Verdict, LaneEffect)] = [
        (404, [retried], false, counted, .failure), (404, [retried], true, .held(.ambiguous), .failure),
        (401, [retried], true, counted, .failure), (503, [retried], false, counted, .close),
        (500, [retried], true, .held(.ambiguous), .failure),
        (405, [retried], false, .dead(reason: "HTTP 405"), .healthy),
        (404, [ended], false, .dead(reason: "HTTP 404"), .healthy),
        (401, [ended], false, .dead(reason: "HTTP 401"), .healthy),
        (421, [ended], false, .dead(reason: "HTTP 421"), .healthy),
        (500, [ended], true, .dead(reason: "HTTP 500"), .failure),
        (503, [ended], false, .dead(reason: "HTTP 503"), .close),
        (404, [ended, retried], false, .dead(reason: "HTTP 404"), .healthy),
        (404, [retried, ended], false, counted, .failure),
        (409, [ended, retried], false, counted, .none),
    ]

    @Test(arguments: ruled.indices)
    func `the first rules of the caller that contain a status decide about the request`(index: Int) throws {
        let (status, rules, isOnce, verdict, lane) = Self.ruled[index]
        var request = try context(mayBeSentTwice: !isOnce)
        request.statusRules = rules
        let classification = classify(status, of: request)
        #expect(classification.verdict == verdict && classification.lane == lane, "\(status)")
    }

    @Test func `the rules of the caller concern neither deliveries nor captive portals`() throws {
        for rules in [Self.retried, Self.ended] {
            var request = try context("http://example.com", accept: "application/json")
            request.statusRules = [rules]
            #expect(classify(200, of: request).verdict == .delivered(status: 200))
            #expect(classify(404, [("content-type", "text/html")], of: request).verdict == Self.free)
            #expect(classify(511, of: request).verdict == Self.free)
        }
        var request = try context(expectation: Expected(contentType: "application/json"))
        request.statusRules = [Self.ended]
        let other = classify(200, [("content-type", "text/plain")], of: request)
        #expect(
            other.verdict == .dead(reason: other.detail ?? "")
                && other.detail?.hasPrefix("HTTP 200, ") == true
        )
    }
}
