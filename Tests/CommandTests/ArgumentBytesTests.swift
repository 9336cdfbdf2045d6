internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Arguments that are not UTF-8. The `printf` of the shell writes their bytes, in octal.
@Suite(.timeLimit(.minutes(5))) struct ArgumentBytesTests {
    private let scratch: ScratchDirectory
    /// The name of a file in shell syntax. Its last byte is 0xFF.
    private let name: String

    init() throws {
        scratch = try ScratchDirectory()
        name = #""$(printf '\#(scratch.path)/f\377')""#
    }

    /// Runs the command with arguments in shell syntax. Returns its output, and its exit status in the last line.
    private func run(_ arguments: String) throws -> String {
        try shell("\(Command.path) \(arguments) 2>&1; echo status $?")
    }

    // MARK: Bodies and files

    private static let bodies: [(option: String, octal: String, bytes: [UInt8])] = [
        ("-d", #"x\377\376"#, [0x78, 0xFF, 0xFE]), ("--json", #"\377"#, [0xFF]),
        // These bytes are UTF-8, of one of the characters that represent other bytes.
        ("-d", #"\357\236\200"#, [0xEF, 0x9E, 0x80]),
        ("-d", #"\303\251\357\236\200\377"#, [0xC3, 0xA9, 0xEF, 0x9E, 0x80, 0xFF]),
    ]

    @Test(arguments: bodies)
    func `a body can be any bytes`(option: String, octal: String, bytes: [UInt8]) throws {
        let server = try ScriptedServer()
        let output = try run(#"send \#(server.url) --queue never \#(option) "$(printf '\#(octal)')""#)
        #expect(server.requests.map(\.body) == [bytes], "\(output)")
    }

    @Test func `the queue delivers a body of any bytes`() async throws {
        let service = try await RunningService(in: scratch)
        let server = try ScriptedServer()
        let output = try run(
            #"send \#(server.url) --socket \#(service.socket) -d "$(printf 'x\377\376')""#
        )
        #expect(server.requests.map(\.body) == [[0x78, 0xFF, 0xFE]], "\(output)")
    }

    @Test(arguments: ["-d @", "--json @", "-T ", "--upload-file="])
    func `the file of a body can have a name of any bytes`(option: String) async throws {
        let service = try await RunningService(in: scratch)
        let server = try ScriptedServer()
        try shell(#"printf 'x\377\376' > \#(name)"#)
        for delivery in ["--queue never", "--socket \(service.socket)"] {
            let output = try run("send \(server.url) \(delivery) \(option)\(name)")
            #expect(output.hasSuffix("status 0\n"), "\(output)")
        }
        #expect(server.requests.map(\.body) == [[0x78, 0xFF, 0xFE], [0x78, 0xFF, 0xFE]])
    }

    @Test func `the file of hosts can have a name of any bytes`() throws {
        try shell("echo 127.0.0.1 > \(name)")
        let output = try run("host --once --hosts-from \(name)")
        #expect(output.contains("127.0.0.1") && output.hasSuffix("status 0\n"), "\(output)")
    }

    @Test func `an export can have a name of any bytes`() async throws {
        let service = try await RunningService(in: scratch)
        try await service.pause()
        try await service.keep("http://127.0.0.1:1/", "-d", "x")
        try shell("\(Command.path) queue export --socket \(service.socket) > \(name)")
        let imported = "imported 0 requests, skipped 1 known\nstatus 0\n"
        #expect(try run("queue import \(name) --socket \(service.socket)").hasSuffix(imported))
        try await service.stop()
        #expect(try run("queue import \(name) --state-dir \(service.stateDirectory)").hasSuffix(imported))
    }

    @Test func `a recording can have a name of any bytes`() throws {
        try shell(#"printf 'netwatch\2\0\0\0\0\0\0\0' > \#(name)"#)
        let replayed = try run("monitor --replay \(name)")
        #expect(replayed == "the recording has no notifications\nstatus 0\n")
        let recorded = try run("monitor --record \(name)")
        #expect(recorded.hasPrefix("error: could not record to `\(scratch.path)/f\\xff`: the file exists"))
        #expect(recorded.hasSuffix("status 64\n"))
    }

    @Test func `the socket can have a name of any bytes`() async throws {
        let service = try await RunningService(in: scratch)
        try shell("ln -s \(service.socket) \(name)")
        #expect(try run("status --socket \(name)").contains("running, pid"))
        for command in ["queue list", "queue stats", "history"] {
            let output = try run("\(command) --socket \(name)")
            #expect(output.hasSuffix("status 0\n"), "\(command): \(output)")
        }
        try await service.stop()
        let output = try run("queue list --socket \(name)")
        #expect(output.hasPrefix("error: no service listens on `\(scratch.path)/f\\xff`\n"), "\(output)")
        #expect(output.hasSuffix("status 69\n"))
    }

    @Test func `the length of a socket's name is counted in bytes`() throws {
        let longest = try run(#"queue list --socket "$(printf '/%0105d\377')""#)
        #expect(longest.contains("no service listens") && longest.hasSuffix("status 69\n"), "\(longest)")
        let longer = try run(#"queue list --socket "$(printf '/%0106d\377')""#)
        #expect(longer.contains("has 108") && longer.hasSuffix("status 64\n"), "\(longer)")
    }

    @Test func `an error prints bytes that are not UTF-8 in hexadecimal`() throws {
        let output = try run(
            #"send http://127.0.0.1:1/ --queue never -T "$(printf '/none/\303\251\377')""#
        )
        #expect(output.hasPrefix(#"error: could not read `/none/é\xff`: "#), "\(output)")
        #expect(output.hasSuffix("status 64\n"))
    }

    @Test func `an error escapes control characters of arguments`() throws {
        let output = try run(#"send http://127.0.0.1:1/ --no"$(printf '\033[1m')""#)
        #expect(output.hasPrefix("error: unknown option `--no\\u{1B}[1m`"), "\(output)")
        #expect(output.hasSuffix("status 64\n"))
    }

    // MARK: Other arguments

    @Test(arguments: [
        (
            #"send http://127.0.0.1:1/ -H "$(printf 'A: \377')""#,
            #"the argument after `-H` is not UTF-8: `A: \xff`"#
        ),
        (#"send "$(printf 'http://a/\377')""#, #"an argument is not UTF-8: `http://a/\xff`"#),
        (#"send http://a/ --lane="$(printf 'a\377')""#, #"an argument is not UTF-8: `--lane=a\xff`"#),
        (#"host --once "$(printf '\377.test')""#, #"the argument after `--once` is not UTF-8: `\xff.test`"#),
        (#"send http://127.0.0.1:1/ --ttl "$(printf '\377')""#, #"`--ttl`: `\xff` is not "#),
        (#"send http://127.0.0.1:1/ --no"$(printf '\377')""#, #"unknown option `--no\xff`"#),
        (#""$(printf '\377')""#, #"unknown command `\xff`"#),
        (
            #"send http://127.0.0.1:1/ --lane "$(printf '\357\236\200')""#,
            "the argument after `--lane` has a character from U+F780 to U+F7FF: "
        ),
    ])
    func `every other argument that is not UTF-8 is refused`(arguments: String, message: String) throws {
        let output = try run(arguments)
        #expect(output.hasPrefix("error: \(message)") && output.hasSuffix("status 64\n"), "\(output)")
    }

    @Test func `bytes that are not UTF-8 are sent from standard input`() async throws {
        let server = try ScriptedServer()
        let send = "\(Command.path) send \(server.url) -d @- --queue never"
        _ = try shell("printf 'x\\377\\376' | \(send) 2>&1")
        #expect(server.requests.map(\.body) == [[0x78, 0xFF, 0xFE]])
    }
}
