internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

@Suite(.timeLimit(.minutes(5))) struct PropertyListEncodingTests {
    private func refusal(_ parameters: Parameters, _ encoding: PropertyListEncoding) throws
        -> InvalidPropertyList
    {
        let error = #expect(throws: AFError.self) {
            try encoding.encode(plainRequest("http://h", .post), with: parameters)
        }
        guard case .parameterEncodingFailed(.propertyListEncodingFailed)? = error else {
            Issue.record("\(String(describing: error))")
            throw CancellationError()
        }
        return try #require(error?.underlyingError as? InvalidPropertyList)
    }

    @Test func `XML is the default format`() throws {
        #expect(PropertyListEncoding.default.format == .xml)
        #expect(PropertyListEncoding.xml.format == .xml)
        #expect(PropertyListEncoding.binary.format == .binary)
        #expect(PropertyListEncoding(format: .binary, options: 0).options == 0)
    }

    @Test(arguments: [PropertyListEncoding.xml, .binary])
    func `Python decodes the parameters`(encoding: PropertyListEncoding) async throws {
        let parameters: Parameters = [
            "foo": [1, 2, 3], "bar": ["baz": "qux & <日>"], "t": true, "one": 1, "real": 1.5,
            "max": UInt64.max, "min": Int64.min, "data": Data([0, 255]),
            "date": Date(timeIntervalSince1970: 86_400), "some": Int?.some(1) as Any, "cg": CGFloat(2.5),
            "ns": NSNumber(value: false), "set": [] as [Any],
        ]
        let encoded = try encoding.encode(plainRequest("http://h/post", .post), with: parameters)
        #expect(encoded.value(forHTTPHeaderField: "Content-Type") == "application/x-plist")
        let script = """
            import base64, plistlib, sys
            read = plistlib.loads(base64.b64decode(sys.argv[1]))
            print(sorted(read.items()))
            """
        let read = try await python(script, [#require(encoded.httpBody).base64EncodedString()])
        #expect(
            read == "[('bar', {'baz': 'qux & <日>'}), ('cg', 2.5), ('data', b'\\x00\\xff'), "
                + "('date', datetime.datetime(1970, 1, 2, 0, 0)), ('foo', [1, 2, 3]), "
                + "('max', 18446744073709551615), ('min', -9223372036854775808), ('ns', False), ('one', 1), "
                + "('real', 1.5), ('set', []), ('some', 1), ('t', True)]"
        )
    }

    @Test func `a value that a property list cannot contain is named with its path`() throws {
        let cases: [(Any, String)] = [
            (NSNull(), "<null>"), (Int?.none as Any, "nil"), (HTTPMethod.get, "get"), (Set([1]), "[1]"),
            (NSDecimalNumber.notANumber, "NaN"), ([1: 2], "the key 1 of type Int"),
            (Date(timeIntervalSince1970: 253_402_300_800), "253402300800.0 s after 1970"),
        ]
        for (value, description) in cases {
            for encoding in [PropertyListEncoding.xml, .binary] {
                let refused = try refusal(["ok": 1, "foo": ["a", value]], encoding)
                #expect(refused.path == ["foo", "1"])
                #expect(refused.description == "foo.1: \(description) cannot be in a property list")
            }
        }
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity, 1e300])
    func `a date outside the calendar is refused`(seconds: Double) throws {
        for encoding in [PropertyListEncoding.xml, .binary] {
            let refused = try refusal(["d": Date(timeIntervalSince1970: seconds)], encoding)
            #expect(refused.path == ["d"])
        }
    }

    @Test(arguments: ["\u{0}", "a\u{1}", "\u{1b}", "\u{fffe}"])
    func `control characters are refused in XML and accepted in the binary format`(text: String) async throws
    {
        #expect(try refusal(["a": text], .xml).path == ["a"])
        #expect(try refusal([text: 1], .xml).value.hasPrefix("the key "))
        let encoded = try PropertyListEncoding.binary.encode(
            plainRequest("http://h", .post),
            with: [text: text]
        )
        let script =
            "import base64, plistlib, sys; print(ascii(plistlib.loads(base64.b64decode(sys.argv[1]))))"
        let read = try await python(script, [#require(encoded.httpBody).base64EncodedString()])
        let expected = try await python(
            "import sys, base64; t = base64.b64decode(sys.argv[1]).decode(); print(ascii({t: t}))",
            [Data(text.utf8).base64EncodedString()]
        )
        #expect(read == expected)
    }

    @Test func `the read-only format is refused`() throws {
        let refused = try refusal(["a": 1], PropertyListEncoding(format: .openStep))
        #expect(refused.description.contains("openStep, which Foundation can only read"))
    }

    @Test(arguments: [PropertyListEncoding.xml, .binary])
    func `512 levels are encoded and decoded, and one more is refused`(encoding: PropertyListEncoding)
        throws
    {
        let deep = (0..<511).reduce(1 as Any) { value, _ in [value] }
        let body = try #require(encoding.encode(plainRequest("http://h", .post), with: ["a": deep]).httpBody)
        #expect(throws: Never.self) { try PropertyListSerialization.propertyList(from: body, format: nil) }
        #expect(try refusal(["a": [deep]], encoding).value == "an array or dictionary 512 levels deep")
    }
}
