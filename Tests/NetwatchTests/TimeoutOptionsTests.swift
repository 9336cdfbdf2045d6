internal import ArgumentParser
internal import Testing

@testable internal import netwatch

/// How long `netwatch send` waits for the service.
@Suite struct TimeoutOptionsTests {
    private func limit(_ arguments: String...) throws -> Duration {
        try TimeoutOptions.parse(arguments).serviceResponse(sending: 0)
    }

    @Test func `without timeouts of its own, send does not give up before those of the service end`() throws {
        #expect(try limit() == .seconds(86_400))
        #expect(try limit("--connect-timeout", "1s") == .seconds(86_400))
    }

    @Test func `with timeouts, send waits until the first attempt has ended`() throws {
        #expect(try limit("--response-timeout", "1h") == .seconds(600 + 3600 + 20))
        #expect(try limit("--max-time", "30s") == .seconds(30 + 20))
    }
}
