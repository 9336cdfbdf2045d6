internal import Testing

@testable internal import NetwatchTransport

/// A URL from the cache must be equal to the same URL parsed without it.
@Suite struct OriginCacheTests {
    private static let texts = [
        "http://example.com", "http://example.com/", "http://example.com/a?b#c", "http://example.com?q",
        "http://example.com#f",
        "http://example.com:8080/x", "http://example.com:80/", "https://example.com/",
        "https://example.com:8080/",
        "HTTP://example.com/", "http://EXAMPLE.com/", "http://user:secret@example.com/",
        "http://user@example.com:8080/",
        "http://example.com:8080@other.example/", "http://127.0.0.1/", "http://0x0a.7/", "http://[::1]:81/",
        "http://[fe80::1%25lo]/", "http://a%2eb/", "http://example.com\\@other.example/",
        "http:///example.com/",
        "http://example.com:/", "http://example.com:99999/", "http://-/", "http://../", "ftp://example.com/",
        "example.com", "",
        "http://", "http:// /", "http://example.com/ x", "http://example.com/\u{e9}", "http://example.com/\n",
    ]

    private func outcome(_ parse: () throws(TransferFailure) -> CurlURL) -> Result<CurlURL, TransferFailure> {
        Result { () throws(TransferFailure) in try parse() }
    }

    @Test func `parsing a URL does not depend on earlier URLs`() {
        var origins = OriginCache()
        for _ in 0..<2 {
            for text in Self.texts.flatMap({ [$0, $0 + "/more", $0 + "@evil.example/"] }) {
                let remembered = Result { () throws(TransferFailure) in try origins.url(text) }
                #expect(
                    remembered == outcome { () throws(TransferFailure) in try CurlURL(parsing: text) },
                    "\(text)"
                )
            }
        }
    }

    @Test func `a URL with an overlong host name is parsed without the cache`() throws {
        let text = "http://\(String(repeating: "a", count: 300))/"
        var origins = OriginCache()
        for _ in 0..<2 { #expect(try origins.url(text) == CurlURL(parsing: text)) }
    }

    @Test func `the cache stays small with many origins`() throws {
        var origins = OriginCache()
        for number in 0..<1_000 { #expect(try origins.url("http://host\(number)/").host == "host\(number)") }
        #expect(try origins.url("http://host0/").host == "host0")
    }
}
