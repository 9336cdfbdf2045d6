internal import NetworkReachability
internal import Testing

@Suite struct NetworkHostTests {
    @Test(arguments: [
        "example.com", "Example.COM.", "localhost", "a", "xn--bcher-kva.example", "_http._tcp.example.com",
        "192.0.2.1", "127.0.0.1", "2001:db8::1", "::1", "fe80::1%1", "1.example",
        String(repeating: "a", count: 63) + ".example",
    ])
    func `a name or an address is a valid host`(text: String) throws {
        #expect(NetworkHost(text)?.text == text)
    }

    @Test(arguments: [
        "", " ", ".", "https://example.com", "example.com:443", "example.com/path", "user@example.com",
        "[::1]", "[::1]:80", "192.0.2.1:80", "192.0.2", "0x7f000001", "0x7F.0x1", "192.0.2.1\0.evil",
        "1.2.3.256", "300.1.1.1", "1", "0.0.0.0", "::",
        "255.255.255.255", "224.0.0.1", "::ffff:0.0.0.0", "ff02::1", "fe80::1", "fe80::1%",
        "fe80::1%no-such-link", "::1%",
        "a..b", "-a.example", "a-.example", "exa mple.com", "example.com\n", "bücher.example", "a\0b",
        String(repeating: "a", count: 64) + ".example",
        String(repeating: "abcdefg.", count: 32) + "example",
    ])
    func `text that is neither a name nor an address of one host is rejected`(text: String) {
        #expect(NetworkHost(text) == nil)
        #expect(NetworkReachabilityManager(host: text) == nil)
    }

    @Test(
        arguments: [
            ("", .empty), ("https://example.com", .scheme), ("example.com/path", .path),
            ("example.com?q", .path), ("user@example.com", .user), ("example.com:443", .port),
            ("[::1]", .brackets), ("fe80::1%no-such-link", .unknownZone), ("192.0.2.1%1", .zone),
            ("1.2.3.256", .mistypedAddress), ("127.1", .mistypedAddress), ("2001:db8:::1", .mistypedAddress),
            ("ff02::1", .notOneHost),
            ("fe80::1", .noZone), ("a..b", .labelLength), ("-a.example", .hyphen),
            ("bücher.example", .character), (String(repeating: "abcdefg.", count: 32) + "example", .tooLong),
        ] as [(String, InvalidHost.Reason)]
    )
    func `the error for invalid text contains the reason`(text: String, reason: InvalidHost.Reason) {
        #expect(throws: InvalidHost.self) { try NetworkHost(validating: text) }
        do throws(InvalidHost) {
            _ = try NetworkReachabilityManager(validating: text)
        } catch {
            #expect(error.reason == reason)
            let isInternational = InternationalName.ascii(text) != nil
            #expect(isInternational || error.description == "`\(text)` is not a valid host: \(reason)")
        }
    }

    /// The expected names are those of Python's codec `idna`.
    @Test(arguments: [
        ("bücher.example", "xn--bcher-kva.example"), ("BÜCHER.example", "xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"), ("пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"),
        ("παράδειγμα.δοκιμή", "xn--hxajbheg2az3al.xn--jxalpdlp"), ("ไทย.th", "xn--o3cw4h.th"),
    ])
    func `the error for an international name contains the name that is accepted`(
        text: String,
        name: String
    ) {
        let error = #expect(throws: InvalidHost.self) { try NetworkHost(validating: text) }
        let message = "`\(text)` is not a valid host: an international name must be written as `\(name)`"
        #expect(error?.description == message && NetworkHost(name) != nil)
    }

    @Test(arguments: [
        "plain.example", "a b", "a_ü.example", "u\u{308}ber.example", "１２７.example", "straße.example",
        "日本語。jp", String(repeating: "ü", count: 60) + ".example",
    ])
    func `no form is proposed for a name whose form is not certain`(text: String) {
        #expect(InternationalName.ascii(text) == nil)
    }

    @Test func `two spellings of a name are equal`() {
        #expect(NetworkHost("Example.com.") == NetworkHost("example.com"))
        #expect(NetworkHost("example.com") != NetworkHost("example.net"))
        #expect(NetworkHost("::ffff:192.0.2.1") == NetworkHost("192.0.2.1"))
        #expect(NetworkHost("2001:DB8:0::1") == NetworkHost("2001:db8::1"))
    }
}
