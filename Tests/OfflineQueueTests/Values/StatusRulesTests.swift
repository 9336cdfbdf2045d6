internal import OfflineQueue
internal import Testing

/// The statuses after which a caller lets requests be retried or given up.
@Suite struct StatusRulesTests {
    @Test func `statuses, ranges and classes are parsed, and printed as statuses and ranges`() throws {
        for (text, printed) in [
            ("404", "404"), ("404,500-599", "404,500-599"), (" 4xx , 503", "400-499,503"),
            ("200-599", "200-599"),
        ] {
            #expect(StatusRanges.text(try StatusRanges.parse(text)) == printed)
        }
    }

    @Test(arguments: [
        "", ",", "404,", "x", "199", "600", "100-199", "500-400", "404-", "-404", "+404", "4.04", "4Xx",
        "40x",
        "404 405", "99999999999999999999", (200..<233).map(String.init).joined(separator: ","),
    ])
    func `a text that is not a list of statuses is refused with the accepted ones`(text: String) {
        let error = #expect(throws: QueueError.self) { try StatusRanges.parse(text) }
        #expect(error?.code == .invalidOption)
        let words = " is not a list of statuses; accepted: \(StatusRanges.acceptedForm)"
        #expect(
            error?.message.hasSuffix(words) == true && error?.message.hasPrefix("`\(text.prefix(9))") == true
        )
    }

    @Test func `a status must not be in both lists, and not out of range`() throws {
        try StatusRules(retry: [404...404, 500...599], dead: [405...499]).check()
        let both = #expect(throws: QueueError.self) {
            try StatusRules(retry: [404...404, 500...599], dead: [400...403, 503...700]).check()
        }
        #expect(
            both?.message
                == "the dead statuses are `400-403,503-700`; they must be at most 32 statuses and ranges within "
                + "200 to 599"
        )
        let shared = #expect(throws: QueueError.self) {
            try StatusRules(retry: [404...404, 500...599], dead: [400...403, 503...504]).check()
        }
        #expect(
            shared?.message
                == "both the retry statuses `404,500-599` and the dead statuses `400-403,503-504` contain 503; "
                + "a status must be in one of the lists"
        )
    }
}
