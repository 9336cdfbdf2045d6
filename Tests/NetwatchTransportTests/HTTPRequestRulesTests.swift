internal import NetwatchTransport
internal import Testing

/// The messages about requests that are refused.
@Suite struct HTTPRequestRulesTests {
    @Test(arguments: ["7", "+1", "", "01"])
    func `a wrong Content-Length is refused without its value`(value: String) {
        let message = #"the header "Content-Length" is not the length of the body; remove the header"#
        #expect(HTTPRequestRules.fault(ofFraming: "Content-Length", value, .bytes(1)) == message)
        #expect(HTTPRequestRules.refusal(ofHeader: "Content-Length", value) == message)
    }

    @Test func `Transfer-Encoding is always refused`() {
        let message = #"the header "transfer-encoding" cannot be set; remove the header"#
        #expect(HTTPRequestRules.fault(ofFraming: "transfer-encoding", "chunked", .chunked) == message)
        #expect(HTTPRequestRules.refusal(ofHeader: "transfer-encoding", "chunked") == message)
    }

    @Test(arguments: ["gzip", "trailers, deflate", "trailers;q=1", "trail ers"])
    func `TE is refused if it offers a transfer coding`(value: String) {
        let message = #"the header "te" offers a transfer coding; only `trailers` is accepted"#
        #expect(HTTPRequestRules.fault(ofFraming: "te", value, .bytes(0)) == message)
        #expect(HTTPRequestRules.refusal(ofHeader: "te", value) == message)
    }

    @Test(arguments: ["trailers", "Trailers", "", "trailers, "])
    func `TE is accepted if it offers no transfer coding`(value: String) {
        #expect(HTTPRequestRules.fault(ofFraming: "TE", value, .bytes(0)) == nil)
    }

    @Test func `a Content-Length is accepted if it is the length, or the length is not known yet`() {
        #expect(HTTPRequestRules.fault(ofFraming: "Content-Length", "1", .bytes(1)) == nil)
        #expect(HTTPRequestRules.fault(ofFraming: "Content-Length", "7", .notYetKnown) == nil)
        #expect(HTTPRequestRules.fault(ofFraming: "Content-Length", "x", .notYetKnown) != nil)
        #expect(HTTPRequestRules.fault(ofFraming: "Content-Length", "7", .chunked) != nil)
    }

    @Test func `a long method is truncated in the message`() {
        let message = HTTPRequestRules.fault(ofMethod: String(repeating: "é", count: 1000))
        let shown = String(repeating: "é", count: 80)
        #expect(message?.hasPrefix("the method \"\(shown)…\" is not valid") == true)
    }
}
