internal import Foundation
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
            Issue.record("the text was accepted")
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
        let headers = found.map { [("Content-Type", $0)] } ?? []
        let response = ReceivedResponse(status: 200, headers: headers)
        #expect(Expected(contentType: expected).isMet(by: response) == isMet)
    }

    @Test func `without an expected type every type is accepted`() {
        #expect(Expected.success.isMet(by: ReceivedResponse(status: 299)))
        #expect(!Expected.success.isMet(by: ReceivedResponse(status: 300)))
    }

    @Test(
        arguments: [
            ("header=X-Server", [.header("X-Server")]),
            (
                "header=Server=nginx, header= A = b=c ",
                [.header("Server", value: "nginx"), .header("A", value: "b=c")]
            ),
            ("body=OK", [.bodyPrefix("OK")]), (#"body= {"a":1\,"#, [.bodyPrefix(#" {"a":1,"#)]),
            ("body=a=b\n", [.bodyPrefix("a=b\n")]), (#"body=\\"#, [.bodyPrefix("\\")]),
            ("json=/a~1b/0", [.jsonMember("/a~1b/0")]),
            (
                #"json=data.ok=true,json=/a\=b=1\,5"#,
                [
                    .jsonMember("data.ok", value: "true"), .jsonMember("/a=b", value: "1,5"),
                ]
            ),
            ("json=a=", [.jsonMember("a", value: "")]),
            (#"json=a= \ x y\  "#, [.jsonMember("a", value: " x y ")]),
            (#"header=A=\ "#, [.header("A", value: " ")]), ("json= a = ", [.jsonMember("a", value: "")]),
        ] as [(String, [Expected.Rule])]
    )
    func `rules are parsed, and their description parses to the same rules`(
        text: String,
        rules: [Expected.Rule]
    ) throws {
        let expectation = try Expected(parsing: text)
        #expect(expectation == Expected(rules: rules))
        #expect(try Expected(parsing: expectation.description) == expectation)
    }

    @Test(
        arguments: [
            ("header=", "name of a header field"), ("header=a b", "`a b` is not the name"),
            ("header=A=\u{1}", "control characters"), ("body=", "needs a text"),
            ("json=", "neither a JSON pointer"), ("json=a..b", "neither a JSON pointer"),
            ("json=/a~2", "`/a~2` is neither"), ("json=/~", "neither a JSON pointer"),
            ("body=x\u{0}", "no NUL"),
            ("body=" + String(repeating: "x", count: 2000), "at most 1024 bytes"),
            ("body=x\\", "accepted: "),
            (Array(repeating: "header=A", count: 17).joined(separator: ","), "17 rules; at most 16"),
        ]
    )
    func `an invalid rule is refused with the reason`(text: String, reason: String) {
        let error = #expect(throws: QueueError.self) { try Expected(parsing: text) }
        #expect(error?.code == .invalidOption && error?.message.contains(reason) == true, "\(error as Any)")
    }

    private static let document =
        #"{"ok":true,"n":10.50,"s":"1","z":null,"list":[{"id":7},[]],"a/b":{"c~d":"x"}}"#

    @Test(
        arguments: [
            ("json=/ok=true", true), ("json=ok=true", true), (#"json=ok="true""#, false),
            ("json=/ok=1", false),
            ("json=n=10.5", true), ("json=n=10", false), ("json=s=1", false), (#"json=s="1""#, true),
            ("json=z=null", true), ("json=z", true), ("json=list.0.id=7", true), ("json=/list/1", true),
            ("json=/list/1=x", false), ("json=/list/2", false), ("json=/list/00/id", false),
            ("json=/list/-1", false), ("json=/a~1b/c~0d=x", true), ("json=/missing", false),
            ("json=ok.x", false),
            (#"body={"ok":true\,"#, true), ("body=<html>", false), ("header=x-api", true),
            ("header=X-API=v 2", true), ("header=X-Api=V 2", false), ("header=X-Other", false),
            ("header=X-Api,json=/ok=false", false), ("header=Via=b", true),
        ]
    )
    func `a response meets the expectation only if it meets every rule`(text: String, isMet: Bool) throws {
        let response = ReceivedResponse(
            status: 200,
            headers: [("X-Api", " v 2 "), ("Via", "a"), ("via", "b")],
            body: Data(Self.document.utf8)
        )
        #expect(try Expected(parsing: text).isMet(by: response) == isMet)
    }

    @Test(arguments: ["", "{", "<html></html>", #"{"ok":true"#, "[]", "true"])
    func `a body without the member does not meet a rule, whatever it is`(body: String) throws {
        let response = ReceivedResponse(status: 200, body: Data(body.utf8))
        #expect(try !Expected(parsing: "json=/ok").isMet(by: response))
    }
}
