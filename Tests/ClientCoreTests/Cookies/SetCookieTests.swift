internal import Foundation
internal import Testing

@testable internal import ClientCore

/// Parsing of `Set-Cookie` fields.
@Suite struct SetCookieTests {
    private static let now = Date(timeIntervalSince1970: 1_700_000_000)

    private func parse(_ field: String) -> SetCookie? { SetCookie(field, at: Self.now) }

    @Test(arguments: [
        ("a=b", "a", "b"), (" a = b ", "a", "b"), ("a=", "a", ""), ("a=b=c", "a", "b=c"),
        ("a=\"b,c\"", "a", "\"b,c\""), ("a=b c\t; Path=/", "a", "b c"), ("ä=ö", "ä", "ö"),
    ])
    func `the first equals sign separates name and value`(field: String, name: String, value: String) {
        #expect(parse(field)?.name == name)
        #expect(parse(field)?.value == value)
    }

    @Test(arguments: ["", "a", "=b", ";a=b", "a=b\u{0}", "a=b; Path=/\u{7f}", "a=b\r\nX: y"])
    func `an invalid field is not a cookie`(field: String) {
        #expect(parse(field) == nil)
    }

    @Test func `a cookie has at most 4096 bytes`() {
        #expect(parse("a=" + String(repeating: "v", count: 4095)) != nil)
        #expect(parse("a=" + String(repeating: "v", count: 4096)) == nil)
    }

    @Test func `an attribute of more than 1024 bytes is ignored`() {
        let long = "/" + String(repeating: "p", count: 1024)
        #expect(parse("a=b; Path=/x; Path=\(long); Secure")?.path == "/x")
        #expect(parse("a=b; Path=/x; Path=\(long); Secure")?.isSecure == true)
    }

    @Test func `attribute names ignore case, and the last duplicate wins`() throws {
        let cookie = try #require(
            parse("a=b; DOMAIN=.X.Example; domain=Y.example; pAth=/p;SECURE; httponly=1; Unknown=3")
        )
        #expect(cookie.domain == "y.example")
        #expect(cookie.path == "/p")
        #expect(cookie.isSecure)
        #expect(cookie.isHTTPOnly)
        #expect(cookie.expires == nil)
    }

    @Test func `an empty domain and a relative path are ignored`() {
        let cookie = parse("a=b; Domain=x.example; Domain=; Path=/p; Path=p")
        #expect(cookie?.domain == nil)
        #expect(cookie?.path == nil)
        #expect(parse("a=b; Domain=.")?.domain == nil)
    }

    @Test func `Max-Age overrides Expires in any order`() {
        let expected = Self.now.addingTimeInterval(10)
        #expect(parse("a=b; Max-Age=10; Expires=Wed, 15 Nov 2023 10:00:00 GMT")?.expires == expected)
        #expect(parse("a=b; Expires=Wed, 15 Nov 2023 10:00:00 GMT; Max-Age=10")?.expires == expected)
    }

    @Test(arguments: ["0", "-1", "-99999999999999999999"])
    func `a Max-Age of 0 or less expires the cookie`(text: String) throws {
        let expires = try #require(parse("a=b; Max-Age=\(text)")?.expires)
        #expect(expires < Self.now)
    }

    @Test(arguments: ["1e3", "+5", "", "-", "1.5", "5 s"])
    func `a Max-Age that is not a number is ignored`(text: String) {
        #expect(parse("a=b; Max-Age=\(text)")?.expires == nil)
    }

    @Test func `the maximum lifetime of a cookie is 400 days`() {
        let limit = Self.now.addingTimeInterval(400 * 86400)
        #expect(parse("a=b; Max-Age=99999999999999999999")?.expires == limit)
        #expect(parse("a=b; Expires=Fri, 31 Dec 9999 23:59:59 GMT")?.expires == limit)
    }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Sun, 6-Nov-1994 8:49:37 PST", "1994 nov 6 08:49:37", "6 November 94 08:49:37x",
        "Sun, 06-Nov-1994 08:49:37 +0800", "Sun, 06 Nov 1994 08:49:37:55 GMT", "Sun(6th)Nov/1994!08:49:37",
        "06 Nov 1994 08:49:37 07 Dec 1995 09:50:38",
    ])
    func `a date is parsed in every form`(text: String) {
        #expect(CookieDate(text)?.date == Date(timeIntervalSince1970: 784_111_777))
    }

    @Test(arguments: [
        "", "tomorrow", "06 Nov 1994", "06 Nov 1994 24:00:00", "06 Nov 1994 08:60:00", "06 Nov 1600 08:49:37",
        "30 Feb 2024 08:49:37", "00 Nov 1994 08:49:37", "32 Jan 1994 08:49:37", "06 Nox 1994 08:49:37",
        "06 Nov 1994 08:49", "06 Nov 19945 08:49:37", "06 Nov 994 08:49:37", "6 Nov 1994 8x:49:37",
    ])
    func `an invalid date is not parsed`(text: String) {
        #expect(CookieDate(text) == nil)
    }

    @Test func `a two-digit year is between 1970 and 2069`() {
        #expect(CookieDate("1 Jan 70 00:00:00")?.date == Date(timeIntervalSince1970: 0))
        #expect(CookieDate("1 Jan 69 00:00:00") == CookieDate("1 Jan 2069 00:00:00"))
        #expect(CookieDate("29 Feb 2024 00:00:00")?.date == Date(timeIntervalSince1970: 1_709_164_800))
    }

    @Test func `a cookie with an unreadable date is a session cookie`() throws {
        let cookie = try #require(parse("a=b; Expires=whenever"))
        #expect(cookie.expires == nil)
    }
}
