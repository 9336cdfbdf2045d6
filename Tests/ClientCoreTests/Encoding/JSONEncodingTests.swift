internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

@Suite(.timeLimit(.minutes(5))) struct JSONEncodingTests {
    private let sorted = JSONEncoding(options: .sortedKeys)

    private func refusal(_ value: Any, _ encoding: JSONEncoding = .default) throws -> InvalidJSONObject {
        let error = #expect(throws: AFError.self) {
            try encoding.encode(plainRequest("http://h", .post), withJSONObject: value)
        }
        guard case .parameterEncodingFailed(.jsonEncodingFailed)? = error else {
            Issue.record("\(String(describing: error))")
            throw CancellationError()
        }
        return try #require(error?.underlyingError as? InvalidJSONObject)
    }

    private func nested(_ depth: Int) -> Any {
        (0..<depth).reduce(1 as Any) { value, _ in [value] }
    }

    @Test func `parameters are encoded into the body, as in the guide`() async throws {
        let parameters: Parameters = ["foo": [1, 2, 3], "bar": ["baz": "qux"]]
        for encoding in [JSONEncoding.default, JSONEncoding(options: [])] {
            let encoded = try encoding.encode(plainRequest("http://h/post", .post), with: parameters)
            #expect(encoded.value(forHTTPHeaderField: "Content-Type") == "application/json")
            let script = "import json, sys; print(json.dumps(json.loads(sys.argv[1]), sort_keys=True))"
            let read = try await python(script, [#require(encoded.bodyText)])
            #expect(read == #"{"bar": {"baz": "qux"}, "foo": [1, 2, 3]}"#)
        }
    }

    @Test func `pretty printing adds line breaks`() throws {
        let encoded = try JSONEncoding.prettyPrinted.encode(plainRequest("http://h", .post), with: ["a": 1])
        #expect(encoded.bodyText == "{\n  \"a\" : 1\n}")
    }

    @Test func `an array can be the body`() throws {
        let encoded = try JSONEncoding.default.encode(
            plainRequest("http://h", .post),
            withJSONObject: ["a", "b"]
        )
        #expect(encoded.bodyText == #"["a","b"]"#)
        let request = try plainRequest("http://h", .post)
        #expect(try JSONEncoding.default.encode(request) == request)
    }

    @Test func `every JSON value is encoded`() throws {
        let parameters: Parameters = [
            "bool": true, "one": 1, "whole": 1.0, "real": 0.1, "float": Float(0.1), "cg": CGFloat(2.5),
            "max": UInt64.max, "decimal": Decimal(string: "1.10") ?? 0, "null": NSNull(),
            "nil": Int?.none as Any,
            "some": Int?.some(1) as Any, "text": "a\"\u{1}\n日", "sub": Substring("s"),
            "ns": NSNumber(value: false),
            "nested": ["b": [NSNull()], "a": [:]] as Parameters, "large": 1e300,
        ]
        let encoded = try sorted.encode(plainRequest("http://h", .post), with: parameters)
        #expect(
            encoded.bodyText
                == #"{"bool":true,"cg":2.5,"decimal":1.1,"float":0.1,"large":1e+300,"max":18446744073709551615,"#
                + #""nested":{"a":{},"b":[null]},"nil":null,"ns":false,"null":null,"one":1,"real":0.1,"some":1,"#
                + #""sub":"s","text":"a\"\u0001\n日","whole":1}"#
        )
    }

    @Test func `a value that JSON cannot contain is named with its path`() throws {
        let cases: [(Any, String)] = [
            (Double.nan, "nan is not JSON"), (Float.infinity, "inf is not JSON"),
            (Date(timeIntervalSince1970: 0), "1970-01-01 00:00:00 +0000 is not JSON"),
            (Date(timeIntervalSince1970: .nan), "nan s after 1970 is not JSON"),
            (Data([1]), "1 bytes is not JSON"), (Decimal.nan, "NaN is not JSON"),
            (NSDecimalNumber.notANumber, "NaN is not JSON"), (Set([1]), "[1] is not JSON"),
            (HTTPMethod.get, "get is not JSON"), (Int128(1), "1 is not JSON"),
            ([1: 2], "the key 1 of type Int is not JSON"),
        ]
        for (value, description) in cases {
            let refused = try refusal(["ok": 1, "foo": ["a", value]] as Parameters)
            #expect(refused.path == ["foo", "1"])
            #expect(refused.description == "foo.1: \(description)")
        }
        #expect(try refusal(["b": Double.nan, "a": Double.nan, "c": Double.nan]).path == ["a"])
    }

    @Test func `the error contains the path of the value`() throws {
        let error = #expect(throws: AFError.self) {
            try JSONEncoding.default.encode(plainRequest("http://h", .post), with: ["a": Double.nan])
        }
        #expect(
            error?.localizedDescription == "The parameters cannot be encoded as JSON: a: nan is not JSON"
        )
    }

    @Test func `a long value is truncated`() throws {
        struct Long: CustomStringConvertible { let description = String(repeating: "x", count: 100_000) }
        #expect(try refusal([Long()]).value.count == 101)
        #expect(try refusal(Long().description).value.count < 200)
    }

    @Test func `a fragment requires the option`() throws {
        let values: [(Any, String)] = [
            ("a", #""a""#), (1, "1"), (NSNull(), "null"), (Int?.none as Any, "null"),
        ]
        for (value, text) in values {
            #expect(try refusal(value).description.hasSuffix("without .fragmentsAllowed is not JSON"))
            let encoded = try JSONEncoding(options: .fragmentsAllowed)
                .encode(plainRequest("http://h", .post), withJSONObject: value)
            #expect(encoded.bodyText == text)
        }
    }

    @Test func `512 levels are encoded and decoded, and one more is refused`() throws {
        let encoded = try JSONEncoding.default
            .encode(plainRequest("http://h", .post), withJSONObject: nested(512))
        let body = try #require(encoded.httpBody)
        #expect(body.count == 1025)
        #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: body) }
        let tooDeep = nested(513)
        let refused = try refusal(tooDeep)
        #expect(refused.path == ["0", "0", "0", "0", "…"])
        #expect(refused.value == "an array or dictionary 512 levels deep")
    }

    @Test func `a custom encoding can be used`() throws {
        struct JSONStringArrayEncoding: ParameterEncoding {
            let array: [String]

            func encode(_ urlRequest: any URLRequestConvertible, with parameters: Parameters?) throws
                -> URLRequest
            {
                var urlRequest = try urlRequest.asURLRequest()
                urlRequest.httpBody = try JSONSerialization.data(withJSONObject: array, options: [])
                return urlRequest
            }
        }
        let encoding: any ParameterEncoding = JSONStringArrayEncoding(array: ["a"])
        #expect(try encoding.encode(plainRequest("http://h", .post), with: nil).bodyText == #"["a"]"#)
    }

    @Test(arguments: [0, 1, 2])
    func `an invalid request keeps its error`(index: Int) {
        struct Broken: URLRequestConvertible {
            func asURLRequest() throws -> URLRequest { throw CancellationError() }
        }
        let encodings: [any ParameterEncoding] = [
            URLEncoding.default, JSONEncoding.default, PropertyListEncoding.default,
        ]
        #expect(throws: CancellationError.self) { try encodings[index].encode(Broken(), with: ["a": 1]) }
    }
}
