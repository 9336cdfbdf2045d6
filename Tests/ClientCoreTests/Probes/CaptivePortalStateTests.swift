internal import Foundation
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Valid and hostile responses of a captive portal's API (RFC 8908 §5).
@Suite struct CaptivePortalStateTests {
    private func state(
        _ json: String,
        type: String? = "application/captive+json"
    ) throws(CaptivePortalState.Malformed) -> CaptivePortalState {
        try CaptivePortalState(mediaType: type, body: Data(json.utf8))
    }

    @Test func `every key is decoded`() throws {
        let state = try state(
            """
            {"captive": false, "user-portal-url": "https://example.org/portal.html",
             "venue-info-url": "https://flight.example.com/entertainment",
             "seconds-remaining": 326, "bytes-remaining": 18446744073709551615,
             "can-extend-session": true, "of-tomorrow": [{"a": null}]}
            """
        )
        #expect(!state.isCaptive)
        #expect(state.portal.userPortalURL == "https://example.org/portal.html")
        #expect(state.portal.venueInfoURL == "https://flight.example.com/entertainment")
        #expect(state.portal.secondsRemaining == 326)
        #expect(state.portal.bytesRemaining == .max)
        #expect(state.portal.canExtendSession == true)
    }

    @Test func `only the key captive is required`() throws {
        let state = try state(#"{"captive":true}"#)
        #expect(state.isCaptive)
        #expect(state.portal == CaptivePortal())
    }

    @Test(arguments: [
        "application/captive+json", "Application/Captive+JSON; charset=utf-8", " application/captive+json ;x",
    ])
    func `parameters and case of the media type are ignored`(type: String) throws {
        #expect(try state(#"{"captive":true}"#, type: type).isCaptive)
    }

    @Test(arguments: [nil, "", "text/html", "application/json", "application/captive+json-x"])
    func `another media type is refused`(type: String?) {
        let error = #expect(throws: CaptivePortalState.Malformed.self) {
            try state(#"{"captive":true}"#, type: type)
        }
        #expect(error?.description.hasSuffix("application/captive+json is required") == true)
    }

    @Test(arguments: [
        "", "null", "true", "[]", "{}", "<html></html>", #"{"captive": 1}"#, #"{"captive": "true"}"#,
        #"{"captive": null}"#, #"{"captive": true"#, #"{"captive": true}}"#, #"{"Captive": true}"#,
        #"{"captive": 1e400}"#,
    ])
    func `a body that is not a JSON object with a Boolean captive is refused`(json: String) {
        let error = #expect(throws: CaptivePortalState.Malformed.self) { try state(json) }
        #expect(error?.description == "the response is not a JSON object with a Boolean `captive`")
    }

    @Test(arguments: ["[", #"{"a":"#])
    func `endless nesting is refused`(opening: String) {
        let deep = String(repeating: opening, count: 64 * 1024 / opening.count)
        for json in [deep, #"{"captive": true, "x": "# + deep] {
            #expect(throws: CaptivePortalState.Malformed.self) { try state(json) }
        }
    }

    @Test func `bytes that are not UTF-8 are refused`() {
        #expect(throws: CaptivePortalState.Malformed.self) {
            try CaptivePortalState(
                mediaType: "application/captive+json",
                body: Data([0x7b, 0xff, 0xfe, 0x80, 0x7d])
            )
        }
    }

    @Test(arguments: [
        "-1", "1.5", "1e400", "18446744073709551616", "\"12\"", "true", "null", "[]", "{}", "1e2000000000",
        String(repeating: "9", count: 60_000),
    ])
    func `an invalid number is ignored, and the rest is decoded`(value: String) throws {
        let json = #"{"captive":true,"seconds-remaining":\#(value),"bytes-remaining":\#(value)}"#
        let state = try state(json)
        #expect(state.isCaptive)
        #expect(state.portal.secondsRemaining == nil)
        #expect(state.portal.bytesRemaining == nil)
    }

    @Test(arguments: [
        "http://example.org/", "javascript:alert(1)", "file:///etc/passwd", "/portal", "https://", "",
        "https:",
        "data:text/html,x", "https://example.org/" + String(repeating: "x", count: 8000),
    ])
    func `a page with another scheme or a long URL is ignored`(url: String) throws {
        let state = try state(#"{"captive":true,"user-portal-url":"\#(url)"}"#)
        #expect(state.isCaptive)
        #expect(state.portal.userPortalURL == nil)
    }

    @Test(arguments: UInt64(1)...20)
    func `randomly changed bytes are decoded exactly or refused`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let start = Array(#"{"captive":true,"user-portal-url":"https://a/","seconds-remaining":12}"#.utf8)
        for _ in 0..<200 {
            var bytes = start
            for _ in 0..<3 {
                bytes[bytes.indices.randomElement(using: &random)!] = .random(in: 0...255, using: &random)
            }
            let body = Data(bytes)
            guard let state = try? CaptivePortalState(mediaType: CaptivePortalState.mediaType, body: body)
            else { continue }
            // The parser must not report a value of `captive` that the bytes do not contain.
            #expect(state.isCaptive == String(decoding: bytes, as: UTF8.self).contains("true"))
        }
    }
}
