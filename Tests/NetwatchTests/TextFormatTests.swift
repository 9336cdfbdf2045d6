internal import Foundation
internal import NetwatchService
internal import Testing

@testable internal import netwatch

@Suite struct TextFormatTests {
    @Test func `a relative path is printed with the working directory`() {
        let directory = FileManager.default.currentDirectoryPath
        #expect("/a/b".absolutePath == "/a/b")
        #expect("a/b".absolutePath == directory + "/a/b" && "./a".absolutePath == directory + "/a")
    }

    @Test(arguments: [
        ("0", Duration.zero), ("0s", .zero), ("500ms", .milliseconds(500)), ("5s", .seconds(5)),
        ("2m", .seconds(120)), ("1h30m", .seconds(5400)), ("1h1m1s1ms", .milliseconds(3_661_001)),
        ("90m", .seconds(5400)), ("9999h", .seconds(9999 * 3600)), ("05s", .seconds(5)),
        ("7d", .seconds(7 * 86_400)), ("1d12h", .seconds(36 * 3600)), ("416d", .seconds(416 * 86_400)),
    ])
    func `a valid duration is parsed`(text: String, duration: Duration) {
        #expect(DurationText.parse(text) == duration)
    }

    @Test(arguments: [
        "", "5", "s", "-5s", "+5s", "1.5s", "5 s", " 5s", "5s ", "5S", "5m1h", "5s5s", "1h30", "5ms5s",
        "417d",
        "12h1d", "5x", "10000h", "9999999999999999999999s", "1h9999h", "５s", "5mm", "5msm",
    ])
    func `an invalid duration is rejected`(text: String) {
        #expect(DurationText.parse(text) == nil)
    }

    @Test(arguments: [
        (Duration.zero, "0.0 s"), (.milliseconds(1250), "1.2 s"), (.milliseconds(59_999), "59.9 s"),
        (.seconds(60), "1 min 0 s"), (.seconds(3599), "59 min 59 s"), (.seconds(11_520), "3 h 12 min"),
        (.seconds(180_000), "2 d 2 h"), (.seconds(-1), "0.0 s"),
    ])
    func `a duration is formatted`(duration: Duration, text: String) {
        #expect(DurationText.format(duration) == text)
    }

    @Test(arguments: [
        (33, "api.example.com/orders/2026/11/26"),
        (25, "api.example.com/…26/11/26"), (20, "api.example.com…1/26"), (10, "api.exa…26"), (1, "…"),
    ])
    func `a long URL keeps its host and the end of its path`(width: Int, text: String) {
        #expect("https://api.example.com/orders/2026/11/26".withoutScheme.shortenedURL(to: width) == text)
    }

    @Test func `a wide text is continued below its beginning`() {
        let line = "held      the server may have executed"
        #expect(line.wrapped(to: 24, indent: 10) == ["held      the server may", "          have executed"])
        #expect(line.wrapped(to: 38, indent: 10) == [line])
        let url = "url       http://a.example/b"
        #expect(url.wrapped(to: 12, indent: 10) == [url])
    }

    @Test func `a count uses the plural except for one`() {
        #expect(CountText.format(1, "request") == "1 request")
        #expect(CountText.format(0, "request") == "0 requests")
        #expect(CountText.format(2, "body", plural: "bodies") == "2 bodies")
    }
}
