internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Arguments that are not UTF-8.
@Suite(.timeLimit(.minutes(5))) struct ArgumentBytesTests {
    /// Arguments for `sh`, whose `printf` writes the bytes 0xFF and 0xFE.
    @Test(arguments: [
        (#"send http://127.0.0.1:1/ -d "$(printf 'x\377\376')""#, 4),
        (#"send http://127.0.0.1:1/ -H "$(printf 'A: \377')""#, 4),
        (#"send http://127.0.0.1:1/ -T "$(printf '/tmp/\377')""#, 4), (#""$(printf '\377')""#, 1),
    ])
    func `an argument that is not UTF-8 is refused and not changed`(arguments: String, number: Int) throws {
        let output = try shell("\(Command.path) \(arguments) 2>&1; echo status $?")
        #expect(output.hasPrefix("error: argument \(number) is not UTF-8: `"), "\(output)")
        #expect(output.contains("hint: `-d @-` and `-T FILE`") && output.hasSuffix("status 64\n"))
    }

    @Test func `bytes that are not UTF-8 are sent from standard input`() async throws {
        let server = try ScriptedServer()
        let send = "\(Command.path) send \(server.url) -d @- --queue never"
        _ = try shell("printf 'x\\377\\376' | \(send) 2>&1")
        #expect(server.requests.map(\.body) == [[0x78, 0xFF, 0xFE]])
    }
}
