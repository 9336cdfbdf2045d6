internal import NetwatchEventLoop
internal import Testing

@testable internal import NetwatchTransport

/// The memory of origins where HTTP/2 has failed, with simulated time.
@Suite struct HTTP1OriginsTests {
    private let start = BootInstant.now

    @Test func `an origin uses HTTP/1.1 for a day`() {
        var origins = HTTP1Origins()
        origins.insert("https://a.example:443", at: start)
        #expect(origins.contains("https://a.example:443", at: start + .seconds(86_399)))
        #expect(!origins.contains("https://b.example:443", at: start))
        #expect(!origins.contains("https://a.example:443", at: start + .seconds(86_400)))
    }

    @Test func `an origin without HTTP/1.1 uses HTTP/2 again`() {
        var origins = HTTP1Origins()
        origins.insert("https://a.example:443", at: start)
        origins.remove("https://a.example:443")
        #expect(!origins.contains("https://a.example:443", at: start))
    }

    @Test func `a further origin replaces the one that was added first`() {
        var origins = HTTP1Origins()
        let names = (0...HTTP1Origins.limit).map { "https://\($0).example:443" }
        for (index, name) in names.enumerated() { origins.insert(name, at: start + .seconds(index)) }
        let now = start + .seconds(names.count)
        #expect(names.filter { origins.contains($0, at: now) } == Array(names.dropFirst()))
    }
}
