internal import ArgumentParser
internal import ClientCore
internal import NetwatchService
internal import OfflineQueue
internal import Testing

@testable internal import netwatch

/// The timeouts and the version of HTTP of `netwatch send`.
@Suite struct AttemptOptionsTests {
    private func limit(_ arguments: String...) throws -> Duration {
        try AttemptOptions.parse(arguments).serviceResponse(sending: 0)
    }

    @Test func `without timeouts of its own, send does not give up before those of the service end`() throws {
        #expect(try limit() == .seconds(86_400))
        #expect(try limit("--connect-timeout", "1s") == .seconds(86_400))
    }

    @Test func `with timeouts, send waits until two attempts have ended, because a refusal is confirmed`()
        throws
    {
        #expect(try limit("--response-timeout", "1h") == .seconds(2 * (600 + 3600) + 30))
        #expect(try limit("--max-time", "30s") == .seconds(2 * 30 + 30))
    }

    @Test func `the version of HTTP applies with and without the service`() throws {
        let options = try AttemptOptions.parse(["--http-version", "1.1"])
        #expect(options.options.httpVersion == .http1)
        var message = ControlMessage.Send(QueueRequest(method: "GET", url: "https://a.example/"))
        options.apply(to: &message.options)
        #expect(message.options.httpVersion == .http1)
        #expect(try AttemptOptions.parse([]).options.httpVersion == nil)
    }

    @Test func `an unknown version of HTTP is refused with the accepted ones`() throws {
        let error = try #require(throws: (any Error).self) {
            try AttemptOptions.parse(["--http-version", "3"])
        }
        let message = AttemptOptions.message(for: error)
        #expect(message.contains("`3` is not a version of HTTP; accepted: 1.1, 2"), "\(message)")
    }
}
