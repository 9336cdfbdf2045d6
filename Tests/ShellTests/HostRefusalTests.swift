internal import NetworkReachability
internal import Testing

@testable internal import netwatch

@Suite struct HostRefusalTests {
    @Test(arguments: [
        ("", "empty"), ("https://example.com", "URL"), ("example.com/path", "path"), ("10.0.0.0/8", "prefix"),
        ("user@example.com", "user name"), ("[::1]", "brackets"), ("exa mple.com", "space"),
        ("example.com\n", "space"), ("fe80::1", "zone"), ("fe80::1%no-such-link", "zone"), ("::1%", "zone"),
        ("224.0.0.1", "one host"), ("::", "one host"), ("255.255.255.255", "one host"),
        ("example.com:443", "port"), ("a..b", "empty label"), (".", "empty label"), ("-a.example", "hyphen"),
        ("bücher.example", "other characters"), ("a\0b", "other characters"), ("1.2.3.256", "looks like"),
        ("192.0.2", "looks like"), (String(repeating: "a", count: 64) + ".example", "63 bytes"),
        (String(repeating: "abcdefg.", count: 32) + "example", "253 bytes"),
    ])
    func `what is no host is told why`(text: String, words: String) {
        #expect(NetworkHost(text) == nil)
        #expect(HostRefusal.reason(for: text).contains(words))
    }
}
