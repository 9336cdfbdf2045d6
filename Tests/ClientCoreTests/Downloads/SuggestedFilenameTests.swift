internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// The name of a downloaded file as suggested by the server.
@Suite(.timeLimit(.minutes(5))) struct SuggestedFilenameTests {
    private func name(
        _ disposition: String?,
        url: String = "http://example.com/a/b.bin?c=d",
        type: String? = nil
    ) -> String {
        SuggestedFilename.of(contentDisposition: disposition, url: URL(string: url), contentType: type)
    }

    @Test(arguments: [
        ("attachment; filename=\"pig.png\"", "pig.png"),
        ("attachment; filename=pig.png", "pig.png"),
        ("ATTACHMENT ; FileName = pig.png ; size=3", "pig.png"),
        ("inline; filename=\"a;b=c.txt\"", "a;b=c.txt"),
        ("inline; filename=\"say \\\"hi\\\".txt\"", "say \"hi\".txt"),
        ("inline; filename=\"naïve.txt\"", "naïve.txt"),
        ("inline; filename*=UTF-8''na%C3%AFve%20plan.txt", "naïve plan.txt"),
        ("inline; filename*=utf-8'en'a%2Cb.txt; filename=x", "a,b.txt"),
        ("inline; filename=x.txt; filename*=UTF-8''%e2%82%ac.txt", "€.txt"),
        ("inline; filename*=ISO-8859-1''%A3.txt", "£.txt"),
        ("inline; filename*=UTF-8''%FF.txt; filename=fallback.txt", "fallback.txt"),
        ("inline; filename*=UTF-8''%4; filename=fallback.txt", "fallback.txt"),
        ("inline; filename*=KOI8-R''a; filename=fallback.txt", "fallback.txt"),
        ("inline; filename=a.txt; filename=b.txt", "a.txt"),
    ])
    func `the server's file name is used`(_ disposition: String, _ expected: String) {
        #expect(name(disposition) == expected)
    }

    @Test(arguments: [
        ("/etc/passwd", "passwd"), ("../../x", "x"), ("..", "b.bin"), (".", "b.bin"), ("", "b.bin"),
        ("a/", "b.bin"), ("C:\\\\dir\\\\a.txt", "a.txt"), (".bashrc", "bashrc"), ("-rf", "rf"),
        ("~root", "root"), (" a ", "a"), ("a\u{7}\u{1b}b", "ab"), ("a\u{202e}gpj.exe", "agpj.exe"),
        ("... --", "b.bin"), ("a\u{2028}b", "ab"),
    ])
    func `directories are removed from the name`(_ text: String, _ expected: String) {
        #expect(name("attachment; filename=\"\(text)\"") == expected)
    }

    @Test func `percent-encoding cannot add slashes`() {
        #expect(name("attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd") == "passwd")
        #expect(name("attachment; filename*=UTF-8''%00a%00") == "a")
        #expect(name(nil, url: "http://example.com/..%2Fetc%2Fa.txt") == "a.txt")
    }

    @Test func `without a name the URL's last component is used, then the content type's extension`() {
        #expect(name(nil) == "b.bin")
        #expect(name("attachment") == "b.bin")
        #expect(name("attachment; filename=\"open", url: "http://example.com/na%C3%AFve") == "naïve")
        #expect(
            name(nil, url: "http://example.com/", type: "application/json; charset=utf-8") == "download.json"
        )
        #expect(name(nil, url: "http://example.com", type: "x/y") == "download")
        #expect(SuggestedFilename.of(contentDisposition: nil, url: nil, contentType: nil) == "download")
    }

    @Test func `a long name is truncated between scalars and keeps its extension`() {
        let long = String(repeating: "é", count: 200)
        let cut = name("attachment; filename=\"\(long).tar.gz\"")
        #expect(cut == String(repeating: "é", count: 126) + ".gz")
        #expect(name("attachment; filename=\"\(long)\"").utf8.count == 254)
        #expect(name("attachment; filename=\"a.\(long)\"").utf8.count == 255 - 1)
    }

    @Test func `the name is derived from a response`() throws {
        let response = try #require(
            HTTPURLResponse(
                url: URL(string: "http://example.com/x")!,
                statusCode: 200,
                httpVersion: nil,
                headerFields: ["content-disposition": "attachment; filename=\"../pig.png\""]
            )
        )
        #expect(SuggestedFilename.of(response) == "pig.png")
    }

    @Test func `random header fields result in a safe name`() {
        let pieces = [
            "attachment", ";", " ", "filename", "filename*", "=", "\"", "\\", "UTF-8''", "%2F", "%", "..",
            "/", "é",
            "\u{0}", "\u{202e}", "a", ".", "-", "%C3", "%A9", "'", "🐷",
        ]
        for seed in seeds(5000) {
            var generator = SeededGenerator(seed: seed)
            let count = Int.random(in: 0...40, using: &generator)
            let text = (0..<count).map { _ in pieces.randomElement(using: &generator)! }.joined()
            let name = name("attachment; filename" + text)
            #expect(isSafe(name), "\(name), NETWATCH_SEED=\(seed)")
        }
    }

    private func isSafe(_ name: String) -> Bool {
        1...255 ~= name.utf8.count && !name.unicodeScalars.contains { $0 == "/" || $0.value < 0x20 }
            && !name.hasPrefix(".") && !name.hasPrefix("-")
    }
}
