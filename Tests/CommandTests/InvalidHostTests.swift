internal import NetwatchTestSupport
internal import Testing

/// Hosts that name servers do not know in this form.
@Suite(.timeLimit(.minutes(5))) struct InvalidHostTests {
    @Test(arguments: [
        (
            "bücher.example", "must be written as `xn--bcher-kva.example`",
            ["tcp = \"HOST:80\"", "route = \"HOST\""]
        ),
        (
            "127.1", "looks like an IP address but is not a valid one",
            ["url = \"http://HOST/\"", "tcp = \"HOST:80\"", "route = \"HOST\""]
        ),
    ])
    func `send and the configuration refuse the same hosts`(host: String, words: String, checks: [String])
        async throws
    {
        let directory = try ScratchDirectory()
        let sent = try await Command.run("send", "http://\(host)/", "--socket", directory.file("none"))
        #expect(sent.ending == .exited(64) && sent.errors.first?.contains(words) == true, "\(sent.errors)")
        for check in checks {
            let text = "[[host]]\nname = \"a\"\n\(check.replacing("HOST", with: host))\n"
            let file = try directory.write(Array(text.utf8), to: "netwatch.toml")
            let checked = try await Command.run("config", "check", "--config", file)
            #expect(
                checked.ending == .exited(78) && checked.errors.first?.contains(words) == true,
                "\(check)"
            )
        }
    }
}
