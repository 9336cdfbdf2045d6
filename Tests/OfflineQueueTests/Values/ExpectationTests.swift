internal import OfflineQueue
internal import Testing

@Suite struct ExpectationTests {
    @Test(
        arguments: [
            ("status=2xx", [200...299], nil), ("status=204", [204...204], nil),
            ("status=200-204,status=404", [200...204, 404...404], nil),
            ("type=application/json", [200...299], "application/json"),
            (" status = 3xx , type = image/* ", [300...399], "image/*"), ("status=200-599", [200...599], nil),
            ("type=*/*", [200...299], "*/*"),
        ] as [(String, [ClosedRange<Int>], String?)]
    )
    func `an expectation's text is parsed, and its description parses to the same value`(
        text: String,
        statuses: [ClosedRange<Int>],
        type: String?
    ) throws {
        let expectation = try Expected(parsing: text)
        #expect(expectation == Expected(statuses: statuses, contentType: type))
        #expect(try Expected(parsing: expectation.description) == expectation)
    }

    @Test(arguments: [
        "", ",", "2xx", "status", "status=", "status=x", "status=xx", "status=1xx", "status=6xx",
        "status=0xx",
        "status=199", "status=600", "status=300-200", "status=200-", "status=-200", "status=200-300-400",
        "status=2000000000000000000000", "status=200;type=a/b", "type=", "type=json", "type=a/b,type=c/d",
        "type=a/b c", "type=a/b/c", "type=/", "color=red", "status=200,", "status=\u{0}",
        Array(repeating: "status=200", count: 33).joined(separator: ","),
    ])
    func `text that is not an expectation is refused and quoted`(text: String) {
        do {
            _ = try Expected(parsing: text)
            Issue.record("it was taken")
        } catch {
            #expect(error.code == .invalidOption)
        }
    }

    @Test(
        arguments: [
            ("application/json", "application/json", true),
            ("application/json", "Application/JSON; charset=utf-8", true),
            ("application/json", "application/json2", false), ("application/json", nil, false),
            ("image/*", "image/png", true), ("image/*", "imagex/png", false), ("*/*", "a/b", true),
            ("*/*", nil, false),
            ("*/*", "", false),
        ] as [(String, String?, Bool)]
    )
    func `types are compared without case and parameters`(expected: String, found: String?, isMet: Bool) {
        #expect(Expected(contentType: expected).isMet(status: 200, contentType: found) == isMet)
    }

    @Test func `without an expected type every type is accepted`() {
        #expect(Expected.success.isMet(status: 299, contentType: nil))
        #expect(!Expected.success.isMet(status: 300, contentType: nil))
    }
}
