internal import ClientTestProcess
internal import Foundation
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// HTTP/2 frames that truncate, reset, flood or contradict a response.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: TestAuthority.isAvailable, "needs openssl"),
    .enabled(if: HostileCase.isMemoryMeasured, "floods take a sanitized process longer than they last")
)
struct HostileHTTP2Tests {
    struct Case: Sendable, CustomTestStringConvertible {
        let harm: String
        let code: Int32
        /// The code that is accepted as well, for the case that the connection ends or the engine aborts the transfer
        /// before libcurl has detected the error.
        var orCode: Int32?
        var error = URLError.Code.networkConnectionLost
        var phase = TransferFailure.Phase.response
        var kind = HostileOptions.Kind.limited(1 << 20)
        var totalTimeout = 20_000

        var testDescription: String { harm }
    }

    private static var cases: [Case] {
        [
            Case(harm: "nothing", code: 28, error: .timedOut, totalTimeout: 10_000),
            Case(harm: "half", code: 18, orCode: 56),
            Case(harm: "goaway", code: 16, orCode: 56),
            Case(harm: "goaway-mid", code: 18, orCode: 56),
            Case(harm: "reset", code: 92),
            Case(harm: "reset-mid", code: 92),
            Case(harm: "refused", code: 56),
            Case(harm: "continuation", code: 56),
            Case(harm: "empty-continuation", code: 56),
            Case(harm: "hints", code: 56),
            Case(harm: "trailers", code: 92, orCode: 8),
            Case(harm: "settings", code: 56),
            Case(harm: "ping", code: 55),
            Case(harm: "window-overflow", code: 52),
            Case(harm: "bad-hpack", code: 52),
            Case(harm: "no-status", code: 92),
            Case(harm: "short-length", code: 92),
            Case(harm: "sized-large", code: 18),
            Case(
                harm: "window-closed",
                code: 28,
                error: .timedOut,
                phase: .request,
                kind: .upload(1 << 20),
                totalTimeout: 10_000
            ),
        ]
    }

    @Test(arguments: cases) func `an HTTP/2 protocol violation is an error`(hostile: Case) async throws {
        let report = try await report(of: hostile)
        let outcome = try #require(report.outcomes.first)
        let error = outcome.transferCode == 8 ? .badServerResponse : hostile.error
        #expect(outcome.error == "URLError \(error.rawValue)", "\(outcome)")
        #expect([hostile.code, hostile.orCode].contains(outcome.transferCode), "\(outcome)")
        #expect(outcome.phase == hostile.phase.rawValue, "\(outcome)")
        report.checkProcess()
    }

    /// The cases run one after another, because each transfer and its server use all available processor time.
    @Test(
        .serialized,
        arguments: [
            "empty-data", "padding", "priorities", "windows", "ping-acks", "goaways", "services", "unknown",
        ]
    ) func `HTTP/2 frames that libcurl would read forever are aborted`(harm: String) async throws {
        // The limit that aborts the transfer counts frames. On a busy machine they take longer than the usual timeout.
        let report = try await report(of: Case(harm: harm, code: 8, totalTimeout: 45_000))
        let outcome = try #require(report.outcomes.first)
        #expect(outcome.transferCode == 8 && outcome.phase == "response", "\(outcome)")
        #expect(outcome.error == "URLError \(URLError.Code.badServerResponse.rawValue)", "\(outcome)")
        report.checkProcess()
    }

    @Test
    func `libcurl accepts a body without a length as complete when an HTTP/2 error ends the connection`()
        async throws
    {
        // This test documents a defect of libcurl. If it fails with a newer libcurl, remove the note on the defect from
        // `TransferEnd.failure`.
        let report = try await report(of: Case(harm: "large", code: 0))
        let outcome = try #require(report.outcomes.first)
        #expect(outcome.error == nil && outcome.status == 200 && outcome.byteCount == 4, "\(outcome)")
        report.checkProcess()
    }

    private func report(of hostile: Case) async throws -> HostileReport {
        let kind = try HostileServer { _ in .close }
        let server = try HostileHTTP2Server(hostile.harm)
        var options = HostileOptions(url: server.url, warmUpURL: kind.options.warmUpURL)
        options.kind = hostile.kind
        options.totalTimeout = hostile.totalTimeout
        options.trustsAnyCertificate = true
        return try await kind.run(options)
    }
}
