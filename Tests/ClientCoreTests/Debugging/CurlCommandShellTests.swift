internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// The requests that a server receives when a real shell runs the commands with a real curl.
@Suite(.timeLimit(.minutes(5))) struct CurlCommandShellTests {
    private let scratch: ScratchDirectory
    private let server: ScriptedServer

    init() throws {
        scratch = try ScratchDirectory()
        server = try ScriptedServer()
    }

    /// Runs the command and returns the request that the server received.
    private func run(
        _ command: CurlCommand,
        input: Data = Data(),
        shell: String = "/bin/sh"
    ) async throws -> ScriptedServer.Request {
        let count = server.requests.count
        let text = command.text()
        try #require(text.hasPrefix("$ "))
        let (script, file) = (scratch.file("script"), scratch.file("input"))
        try Data("\(text.dropFirst(2))\n".utf8).write(to: URL(fileURLWithPath: script))
        try input.write(to: URL(fileURLWithPath: file))
        let outcome = try await Subprocess(
            shell,
            ["-c", "exec <\"$2\"; . \"$1\"", "sh", script, file],
            // Ignore the user's curl configuration and proxies.
            environment: ["CURL_HOME": scratch.path, "HOME": scratch.path, "no_proxy": "*", "NO_PROXY": "*"]
        ).outcome()
        try #require(outcome.ending == .exited(0), "\(text)\n\(outcome.errors)")
        let requests = server.requests
        try #require(requests.count == count + 1, "\(text)")
        return requests[count]
    }

    private func request(_ target: String = "/", _ method: String = "GET", body: Data? = nil) -> URLRequest {
        URLRequest(server.url + target, method, body: body)
    }

    @Test func `curl sends a GET`() async throws {
        var command = CurlCommand(request("/a/b?c=d&e=%27%22"))
        command.sessionHeaders = ["X-One": "1", "X-Empty": "", "Accept": "text/plain"]
        let received = try await run(command)
        #expect(received.method == "GET")
        #expect(received.target == "/a/b?c=d&e=%27%22")
        #expect(received.values(of: "X-One") == ["1"])
        #expect(received.values(of: "X-Empty") == [""])
        #expect(received.values(of: "Accept") == ["text/plain"])
        #expect(received.body.isEmpty)
    }

    @Test(arguments: [
        "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "query", "-X", "it's", "`id`", "!!", "$HOME",
    ])
    func `curl sends the method`(method: String) async throws {
        #expect(try await run(CurlCommand(request("/", method))).method == method)
    }

    @Test(
        arguments: ["GET", "POST", "DELETE"],
        ["", "@/etc/passwd", "-X", "$(id) `id` !! \"'\\ \\\n&\t|\r\n", "'\u{301}"]
    )
    func `curl sends a text body without its default content type`(
        method: String,
        body: String
    ) async throws {
        let received = try await run(CurlCommand(request("/", method, body: Data(body.utf8))))
        #expect(received.method == method)
        #expect(received.body == Array(body.utf8))
        #expect(received.values(of: "Content-Type") == [])
        #expect(received.values(of: "Content-Length") == ["\(body.utf8.count)"])
    }

    @Test func `curl sends bodies from a file and from standard input`() async throws {
        let content = Data([0, 0xff, 0x0d, 0x0a, 0x27])
        let path = scratch.file("-it's $a\n@file")
        try content.write(to: URL(fileURLWithPath: path))
        // With `--upload-file`, curl would append the file's name to this path.
        let file = try await run(CurlCommand(request("/directory/", "PUT"), body: .file(path: path)))
        #expect(file.body == Array(content))
        #expect(file.target == "/directory/")
        #expect(
            try await run(CurlCommand(request("/", "POST"), body: .stream), input: content).body
                == Array(content)
        )
        let binary = CurlCommand(request("/", "POST", body: content))
        #expect(try await run(binary, input: content).body == Array(content))
    }

    @Test func `curl sends cookies and credentials`() async throws {
        var command = CurlCommand(request())
        command.credential = ("it's", "a:b$c")
        for cookies in ["a=1; b='2'", "@/etc/passwd=1", "@\u{301}=1", "no-value", "=\u{301}"] {
            command.cookies = cookies
            let received = try await run(command)
            #expect(received.values(of: "Cookie") == [cookies])
            let credential = Data("it's:a:b$c".utf8).base64EncodedString()
            #expect(received.values(of: "Authorization") == ["Basic \(credential)"])
        }
    }

    @Test(arguments: ["/a[1-3]{b,c}", "/a?b[]=1&c={d}", "/$HOME/`id`'!!\"", "/ü?ü=ü", "/%00%0a"])
    func `curl sends the target as Foundation writes it`(target: String) async throws {
        let request = request(target)
        let sent = try #require(request.url).absoluteString.dropFirst(server.url.count)
        #expect(try await run(CurlCommand(request)).target == sent)
    }

    /// Without `--globoff`, curl would expand brackets in a URL as a pattern. `URLComponents` can create URLs with
    /// brackets.
    @Test func `curl does not expand brackets`() async throws {
        let text = CurlCommand(URLRequest(url: URL(string: "http://[::1]:80/")!)).text()
        #expect(text.contains("--globoff \\\n\t'http://[::1]:80/'"))
    }

    @Test(arguments: ["/bin/sh", "/bin/bash"])
    func `curl sends random requests unchanged`(shell: String) async throws {
        let seed =
            ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap(UInt64.init)
            ?? .random(in: 0...(.max))
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<60 {
            let method = ["GET", "POST", "PUT", "'-$`!*"].randomElement(using: &generator)!
            var components = URLComponents(string: server.url)!
            // curl resolves `.` and `..`, as the engine does.
            components.path = "/" + randomText(&generator).filter { $0 != "." }
            components.query = randomText(&generator)
            let value = randomText(&generator).filter { !$0.isNewline }
            let body = Data(randomText(&generator).utf8)
            var request = URLRequest(url: components.url!)
            request.httpMethod = method
            request.httpBody = method == "GET" ? nil : body
            var command = CurlCommand(request)
            command.sessionHeaders = ["X-Value": value]
            let received = try await run(command, input: body, shell: shell)
            #expect(received.method == method, "seed \(seed)")
            #expect(
                received.target == request.url?.absoluteString.dropFirst(server.url.count).description,
                "seed \(seed)"
            )
            let expected = value.trimmingCharacters(in: CharacterSet(charactersIn: " \t"))
            #expect(
                received.values(of: "X-Value").map { $0.trimmingCharacters(in: .init(charactersIn: " \t")) }
                    == [expected],
                "seed \(seed)"
            )
            #expect(received.body == (method == "GET" ? [] : Array(body)), "seed \(seed)")
        }
    }

    private func randomText(_ generator: inout SeededGenerator) -> String {
        let hostile = [
            "'", "\"", "\\", "$", "`", "!", "@", "-", "\n", "\r", "\t", "#", ";", "&", "|", "*", "?", "~",
            "%", "[", "]", "{", "}", "(", "<", ">", "=", " ", "\u{301}", "é", "🦄", "$(id)", "\\\n",
            "REDACTED", "\u{1b}", "\u{7f}",
        ]
        return (0..<Int.random(in: 0...20, using: &generator))
            .map { _ in
                Bool.random(using: &generator)
                    ? hostile.randomElement(using: &generator)!
                    : String(Unicode.Scalar(UInt8.random(in: 1...126, using: &generator)))
            }
            .joined()
    }
}
