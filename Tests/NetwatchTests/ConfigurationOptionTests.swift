internal import ArgumentParser
internal import Testing

@testable internal import NetwatchService
@testable internal import netwatch

/// The exit statuses of commands that read the configuration.
@Suite struct ConfigurationOptionTests {
    private func status(_ problems: ConfigurationProblem...) throws -> CInt? {
        let option = try ConfigurationOption.parse([])
        let error = #expect(throws: CommandError.self) {
            try option.reading { () throws(InvalidConfiguration) in
                throw InvalidConfiguration(problems, inOrderOf: [])
            }
        }
        return error?.status.rawValue
    }

    @Test func `systemd restarts the service only after faults that may be temporary`() throws {
        let fault = ConfigurationProblem(source: "a", line: 1, column: 1, message: "wrong")
        var temporary = fault
        temporary.isTemporary = true
        #expect(try status(temporary) == 75)
        #expect(try status(fault) == 78)
        #expect(try status(temporary, fault) == 78)
    }

    @Test func `a fault of a credential file prevails over a fault that may be temporary`() {
        let error = CommandError(.tryAgain, "the group database cannot be read")
        #expect(ConfigCommand.Check.failure(error, besides: []).status == .tryAgain)
        let failure = ConfigCommand.Check.failure(error, besides: ["wrong"])
        #expect(failure.status == .unusableStore && failure.message == error.message)
    }
}
