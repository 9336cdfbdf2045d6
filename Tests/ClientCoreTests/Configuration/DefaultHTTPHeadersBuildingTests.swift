internal import Foundation
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

@Suite(.timeLimit(.minutes(5))) struct DefaultHTTPHeadersBuildingTests {
    private let debian = OSRelease(
        """
        PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
        NAME="Debian GNU/Linux"
        VERSION_ID="12"
        """
    )

    // MARK: Accept-Encoding

    @Test(arguments: [
        (["br", "gzip", "deflate"], "br;q=1.0, gzip;q=0.9, deflate;q=0.8"),
        (["deflate", "zstd", "gzip"], "gzip;q=1.0, deflate;q=0.9"), ([], "identity"),
    ])
    func `only encodings that can be decoded are offered`(decoders: [String], expected: String) {
        #expect(DefaultHTTPHeaders.headers(decoders: decoders)["Accept-Encoding"] == expected)
        #expect(!expected.contains("compress"))
    }

    // MARK: Accept-Language

    @Test(
        arguments: [
            ([:], "en"), (["LANG": "C"], "en"), (["LANG": "POSIX"], "en"), (["LANG": "C.UTF-8"], "en"),
            (["LANG": "", "LC_ALL": ""], "en"), (["LANG": "de_AT.UTF-8@euro"], "de-AT"),
            (["LANG": "fr"], "fr"),
            (["LANG": "de_AT", "LC_MESSAGES": "fr_FR"], "fr-FR"),
            (["LANG": "de_AT", "LC_MESSAGES": "fr_FR", "LC_ALL": "it_IT"], "it-IT"),
            (["LANG": "de_AT", "LC_ALL": ""], "de-AT"), (["LANG": "de_AT", "LC_ALL": "C"], "en"),
            (["LANG": "de_AT", "LANGUAGE": "sv:da_DK"], "sv,da-DK,de-AT"),
            (["LANG": "de_AT", "LANGUAGE": "de_AT:de"], "de-AT,de"),
            (["LANG": "de_AT", "LANGUAGE": "fr:C:it"], "fr,en"),
            (["LANG": "C.UTF-8", "LANGUAGE": "de"], "en"), (["LANGUAGE": "de"], "en"),
            (["LANG": "sr_RS@latin"], "sr-Latn-RS"), (["LANG": "es_419.UTF-8"], "es-419"),
            (["LANG": "FIL_ph"], "fil-PH"),
        ] as [([String: String], String)]
    )
    func `the languages are those that gettext selects`(environment: [String: String], expected: String) {
        #expect(PreferredLanguages.list(environment).joined(separator: ",") == expected)
    }

    @Test(arguments: [
        "en\r\nX: y", "../../etc", "e", "english_US", "de__AT", "de_", "_AT", "d3_AT", "de_A1", "de AT", "日本",
        "de;q=0.1", "@", ".", ":::", "\0", String(repeating: "x", count: 1000),
    ])
    func `an invalid locale is ignored`(locale: String) {
        #expect(PreferredLanguages.list(["LANG": locale]) == ["en"])
        #expect(PreferredLanguages.list(["LANG": "de_AT", "LANGUAGE": locale]) == ["de-AT"])
    }

    @Test func `at most six languages are sent, with decreasing qualities from 1.0`() {
        #expect(
            DefaultHTTPHeaders.acceptLanguage(["a", "b", "c", "d", "e", "f", "g"])
                == "a;q=1.0, b;q=0.9, c;q=0.8, d;q=0.7, e;q=0.6, f;q=0.5"
        )
    }

    // MARK: User-Agent

    @Test func `the user agent contains the program, the system and netwatch`() {
        let info = ProgramInfo(
            program: "/usr/bin/my tool",
            programVersion: "2.1",
            osRelease: debian,
            kernelRelease: "6.1.0-18-amd64"
        )
        #expect(
            UserAgent.text(for: info)
                == "mytool/2.1 (Debian GNU/Linux 12 bookworm; Linux 6.1) netwatch/\(NetwatchVersion.current)"
        )
    }

    @Test func `unknown parts of the user agent are omitted`() {
        let own = "netwatch/\(NetwatchVersion.current)"
        #expect(UserAgent.text(for: ProgramInfo()) == own)
        #expect(UserAgent.text(for: ProgramInfo(program: "tool")) == "tool \(own)")
        let nameless = ProgramInfo(program: "/", kernelRelease: "5")
        #expect(UserAgent.text(for: nameless) == "\(own) (Linux 5)")
    }

    @Test(arguments: [
        "\r\nX: y", "(((", "\\", "日本", "a\0b", "\u{7f}\u{1}", String(repeating: "x ", count: 99),
    ])
    func `the user agent is a valid field, whatever the names of the machine`(name: String) {
        let info = ProgramInfo(
            program: name,
            programVersion: name,
            osRelease: OSRelease("PRETTY_NAME=\"\(name)\""),
            kernelRelease: name
        )
        let text = UserAgent.text(for: info)
        #expect(text.utf8.allSatisfy { (0x20...0x7e).contains($0) })
        #expect(text.utf8.count < 300)
        #expect(text.count { $0 == "(" } == text.count { $0 == ")" })
        let own = "netwatch/\(NetwatchVersion.current)"
        #expect(text.hasPrefix(own) || HTTPToken.isValid(String(text.prefix { !" /".contains($0) })))
        #expect(text.contains(own))
    }

    @Test(
        arguments: [
            ("", nil), ("NAME=Alpine\nVERSION_ID=3.20", "Alpine 3.20"), ("NAME='Arch Linux'", "Arch Linux"),
            ("PRETTY_NAME=\nNAME=x", "x"), ("PRETTY_NAME=\"a \\\"b\\\"\"", "a \"b\""),
            ("PRETTY_NAME=\"", "\""),
            ("# PRETTY_NAME=a\nPRETTY_NAME=b\r\nPRETTY_NAME=c", "c"), ("=\n==\nx", nil),
        ] as [(String, String?)]
    )
    func `the system's name is read from os-release`(text: String, expected: String?) {
        #expect(OSRelease(text).operatingSystemName == expected)
    }

    @Test func `the fields of this machine are ASCII and follow its environment`() async throws {
        let headers = DefaultHTTPHeaders.headers()
        #expect(headers.keys.sorted() == ["Accept-Encoding", "Accept-Language", "User-Agent"])
        #expect(headers.values.allSatisfy { $0.utf8.allSatisfy { (0x20...0x7e).contains($0) } })
        let shell = try Subprocess("/bin/sh", ["-c", ". /etc/os-release; echo $PRETTY_NAME; uname -r"])
        let lines = try await shell.outcome().output
        let name = lines[0].filter { !"()".contains($0) }
        let kernel = lines[1].split(separator: ".").prefix(2).joined(separator: ".")
        let agent = try #require(headers["User-Agent"])
        #expect(agent.hasSuffix("(\(name); Linux \(kernel)) netwatch/\(NetwatchVersion.current)"))
        #expect(agent.hasPrefix(ProcessInfo.processInfo.processName.prefix(8)))
    }
}
