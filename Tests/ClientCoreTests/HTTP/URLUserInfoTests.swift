internal import ClientCore
internal import Foundation
internal import Testing

/// The removal of user name and password from URLs.
@Suite struct URLUserInfoTests {
    @Test(arguments: [
        ("http://u:p@h/", "http://h/"), ("HTTPS://u@H:1/a?b#c", "HTTPS://H:1/a?b#c"),
        ("http://@h", "http://h"), ("http://u:p@[::1]:8080", "http://[::1]:8080"),
        ("http://u%40x:p@h/?q=a@b#c@d", "http://h/?q=a@b#c@d"),
    ])
    func `user name and password are removed`(url: String, expected: String) throws {
        #expect(URL.removingUserInfo(from: url) == expected)
        #expect(try #require(URL(string: url)).withoutUserInfo?.absoluteString == expected)
    }

    @Test(arguments: [
        "http://h/", "http://h/a@b", "http://h?a@b", "http://h#a@b", "/a?u=http://b@c/", "mailto:a@b", "",
    ])
    func `the rest of the text is unchanged`(text: String) {
        #expect(URL.removingUserInfo(from: text) == text)
    }

    @Test func `malformed text also loses its password`() {
        #expect(URL.removingUserInfo(from: "http://u:p p@@a b/") == "http://a b/")
        #expect(URL.removingUserInfo(from: "http://h/\u{301}@b") == "http://h/\u{301}@b")
    }
}
