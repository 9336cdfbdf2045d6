internal import ClientCore
internal import NetwatchTransport
internal import OfflineQueue
internal import Testing

/// Which header fields of a response the store keeps.
@Suite struct KeptHeaderFieldsTests {
    @Test(arguments: [
        "Content-Type", "ETag", "Retry-After", "X-Request-ID", "traceparent", "RateLimit-Remaining",
    ])
    func `fields that describe the response are kept unchanged`(name: String) {
        #expect(KeptHeaderFields.keptValue(of: name, "value; a=?b#c") == "value; a=?b#c")
    }

    @Test(arguments: [
        "Set-Cookie", "Authorization", "X-Auth-Token", "X-Amz-Security-Token", "WWW-Authenticate",
    ])
    func `fields that may contain a secret are not kept`(name: String) {
        #expect(KeptHeaderFields.keptValue(of: name, "secret") == nil)
    }

    @Test func `no field that counts as a secret is in the list`() {
        #expect(KeptHeaderFields.names.isDisjoint(with: SecretHeaderFields.request.union(["set-cookie"])))
        #expect(KeptHeaderFields.names.allSatisfy { $0 == $0.lowercased() })
    }

    @Test(arguments: [
        ("https://u:p@example.com:8080/a@b?token=t#f", "https://example.com:8080/a@b"),
        ("/things/7?code=1", "/things/7"),
        ("//u@example.com/x", "//example.com/x"),
        ("https://example.com?t=//u@x", "https://example.com"),
        ("https://example.com/done#access_token=t", "https://example.com/done"),
        ("https://u:p@\u{301}a.example/b?\u{301}token=t", "https://\u{301}a.example/b"),
        ("https://a.example/b#\u{301}token=t", "https://a.example/b"),
        ("", ""),
    ])
    func `a stored Location has no user information, query or fragment`(value: String, kept: String) {
        #expect(KeptHeaderFields.keptValue(of: "Location", value) == kept)
    }

    @Test(arguments: [
        ("<https://a.example/2?page=2&token=s>; rel=\"next\"", "<https://a.example/2>; rel=\"next\""),
        ("</a?k=1>; rel=prev, <https://u:p@b/c>; rel=last", "</a>; rel=prev, <https://b/c>; rel=last"),
        ("<https://a.example/2?token=s", ""),
        ("<\u{301}https://a.example/2?token=s>; rel=next", "<\u{301}https://a.example/2>; rel=next"),
        ("none", "none"),
    ])
    func `the URLs in a stored Link field lose the same parts`(value: String, kept: String) {
        #expect(KeptHeaderFields.keptValue(of: "link", value) == kept)
    }
}
