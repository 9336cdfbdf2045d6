internal import ClientCore
internal import Foundation
internal import NetwatchTestSupport
internal import OfflineQueue
internal import Testing

/// The stored form of the settings of attempts.
@Suite struct AttemptSettingsTests {
    private let directory = TemporaryDirectory(marker: "settings")
    private let clock = TestStoreClock()

    @Test func `only the settings that differ from their defaults are stored`() {
        var settings = AttemptSettings()
        #expect(settings.stored == nil)
        settings.httpVersion = .http1
        #expect(settings.stored == "http-version=1.1")
        (settings.timeouts.connect, settings.timeouts.response) = (.microseconds(1), .seconds(600))
        (settings.timeouts.total, settings.httpVersion) = (.seconds(900), .http2)
        #expect(settings.stored == "connect=1,response=600000,total=900000,http-version=2")
        settings = AttemptSettings()
        settings.statusRules = StatusRules(retry: [404...404, 500...599], dead: [410...410])
        settings.isRecorded = false
        #expect(settings.stored == "retry=404+500-599,dead=410,record=none")
        #expect(AttemptSettings(stored: settings.stored) == settings)
    }

    @Test func `stored settings that cannot be parsed are replaced with the defaults`() {
        for text in [
            "", "response", "response=", "response=x", "other=5", "response=99999999999999999999",
            "http-version=", "http-version=3", "retry=", "retry=600", "dead=404+", "record=all",
        ] {
            #expect(AttemptSettings(stored: text) == AttemptSettings(), "\(text)")
        }
        var expected = AttemptSettings()
        (expected.timeouts.response, expected.timeouts.total) = (.milliseconds(1), .seconds(86_400))
        expected.httpVersion = .http1
        #expect(
            AttemptSettings(stored: "response=0,x,total=999999999999,http-version=1.1") == expected
        )
    }

    @Test(arguments: [
        ("http-version=3", "the HTTP version is `3`; it must be 1.1 or 2"),
        ("response=1,http-version=", "the HTTP version is ``; it must be 1.1 or 2"),
        ("retry=404+x", "`404,x` is not a list of statuses; accepted: "),
        ("retry=404,dead=404", "both the retry statuses `404` and the dead statuses `404` contain 404"),
        ("response=x", "the timeout `response=x` is not a number of milliseconds"),
        ("other=5", "the setting `other=5` of the attempts is unknown; accepted: "),
        ("connect=0", "the connect timeout is 0 seconds; it must be 1 ms to 24 hours"),
    ])
    func `an import names the setting that it refuses`(text: String, words: String) async throws {
        let (export, files) = (try await export { _ in }, TemporaryDirectory())
        let invalid = export.map { $0.replacing(#""connect=9""#, with: "\"\(text)\"") }
        #expect(invalid != export)
        let path = try file(try sealed(invalid), in: files)
        try await withQueue(TemporaryDirectory()) { queue, _ in
            let error = await #expect(throws: QueueError.self) { try await queue.importRequests(from: path) }
            #expect(error?.code == .invalidImport)
            #expect(error?.message.contains(words) == true, "\(error as Any)")
        }
    }

    @Test func `the version of HTTP survives a restart, the history, and an export`() async throws {
        let versions: [HTTPVersion?] = [nil, .http1, .http2]
        let store = try await directory.openStore(clock: clock)
        for (index, version) in versions.enumerated() {
            try await store.enqueue(try new("\(index)") { $0.httpVersion = version })
        }
        await store.close()
        let again = try await directory.openStore(clock: clock)
        let lane = try await again.restart()[0].id
        let claimed = try await again.claim(of: lane).requests
        #expect(claimed.map(\.settings.httpVersion) == versions)
        for request in claimed { try await again.conclude(request, .dead(reason: "HTTP 404")) }
        #expect(try await again.details(of: "1")?.httpVersion == .http1)
        _ = try await again.edit(.retry(newKey: false), claimed.map(\.id))
        #expect(try await again.claim(of: lane).requests.map(\.settings.httpVersion) == versions)
        let files = TemporaryDirectory()
        let path = try file(try sealed(try await export { $0.httpVersion = .http1 }), in: files)
        try await withQueue(TemporaryDirectory()) { queue, _ in
            _ = try await queue.importRequests(from: path)
            #expect(try await queue.request("a")?.httpVersion == .http1)
        }
    }

    /// Returns the lines of an export of one request with a connect timeout of 9 ms.
    private func export(_ adjust: (inout EnqueueOptions) -> Void) async throws -> [String] {
        try await withQueue(TemporaryDirectory()) { queue, store in
            let request = try new("a") {
                $0.timeouts.connect = .milliseconds(9)
                adjust(&$0)
            }
            try await store.enqueue(request)
            return lines(try await queue.exported())
        }
    }
}
