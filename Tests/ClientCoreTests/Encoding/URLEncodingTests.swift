internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

@testable internal import ClientCore

@Suite(.timeLimit(.minutes(5))) struct URLEncodingTests {
    private func query(_ parameters: Parameters, _ encoding: URLEncoding = .queryString) throws -> String? {
        try encoding.encode(plainRequest(), with: parameters).url?.query(percentEncoded: true)
    }

    /// Returns the encoded pairs of one parameter, as sent.
    private func pairs(_ value: Any, _ encoding: URLEncoding = .default) -> String {
        encoding.queryComponents(fromKey: "k", value: value).map { "\($0)=\($1)" }.joined(separator: "&")
    }

    // MARK: Destinations

    @Test(arguments: [HTTPMethod.get, .head, .delete])
    func `GET, HEAD and DELETE encode parameters into the URL`(method: HTTPMethod) throws {
        for encoding in [URLEncoding.default, .methodDependent, URLEncoding(destination: .methodDependent)] {
            let encoded = try encoding.encode(
                plainRequest("https://httpbin.org/get", method),
                with: ["foo": "bar"]
            )
            #expect(encoded.url?.absoluteString == "https://httpbin.org/get?foo=bar")
            #expect(encoded.httpBody == nil)
            #expect(encoded.value(forHTTPHeaderField: "Content-Type") == nil)
        }
    }

    @Test(arguments: [HTTPMethod.post, .put, .patch, .options, .trace])
    func `other methods encode parameters into the body`(method: HTTPMethod) throws {
        let parameters: Parameters = ["foo": "bar", "baz": ["a", 1], "qux": ["x": 1, "y": 2, "z": 3]]
        for encoding in [URLEncoding.default, .httpBody] {
            let encoded = try encoding.encode(
                plainRequest("https://httpbin.org/post", method),
                with: parameters
            )
            #expect(
                encoded.bodyText?.removingPercentEncoding
                    == "foo=bar&baz[]=a&baz[]=1&qux[x]=1&qux[y]=2&qux[z]=3".sortedPairs
            )
            #expect(
                encoded.value(forHTTPHeaderField: "Content-Type")
                    == "application/x-www-form-urlencoded; charset=utf-8"
            )
            #expect(encoded.url?.absoluteString == "https://httpbin.org/post")
        }
    }

    @Test func `an explicit destination overrides the method's`() throws {
        let inURL = try URLEncoding.queryString.encode(plainRequest("http://h/p", .post), with: ["a": 1])
        #expect(inURL.url?.absoluteString == "http://h/p?a=1")
        #expect(inURL.httpBody == nil)
        let inBody = try URLEncoding.httpBody.encode(plainRequest("http://h/p", .get), with: ["a": 1])
        #expect(inBody.url?.absoluteString == "http://h/p")
        #expect(inBody.bodyText == "a=1")
    }

    @Test(arguments: [
        ("http://h/p?x=1", "http://h/p?x=1&a=1"), ("http://h/p?", "http://h/p?a=1"),
        ("http://h/p?x=1&", "http://h/p?x=1&a=1"), ("http://h/p#f?g", "http://h/p?a=1#f?g"),
        ("http://h/p?x=[ü]|#f", "http://h/p?x=%5B%C3%BC%5D%7C&a=1#f"), ("http://h", "http://h?a=1"),
        ("http://h?x=%20", "http://h?x=%20&a=1"),
        ("http://h/p??b", "http://h/p??b&a=1"),
    ])
    func `an existing query is kept`(url: String, expected: String) throws {
        let encoded = try URLEncoding.default.encode(plainRequest(url), with: ["a": 1])
        #expect(encoded.url?.absoluteString == expected)
    }

    @Test func `a relative URL keeps its base`() throws {
        let url = try #require(URL(string: "p", relativeTo: URL(string: "http://h/b/")))
        let encoded = try URLEncoding.default.encode(URLRequest(url: url), with: ["a": 1])
        #expect(encoded.url?.absoluteString == "http://h/b/p?a=1")
    }

    @Test func `a request without parameters is unchanged`() throws {
        var request = try plainRequest("http://h/p?x", .post)
        request.httpBody = Data([1])
        let encodings: [any ParameterEncoding] = [
            URLEncoding.default, URLEncoding.httpBody, JSONEncoding.default, PropertyListEncoding.default,
        ]
        for encoding in encodings { #expect(try encoding.encode(request, with: nil) == request) }
        let get = try plainRequest("http://h/p")
        #expect(try URLEncoding.default.encode(get, with: [:]) == get)
    }

    @Test func `an existing content type is kept`() throws {
        let request = try URLRequest(url: "http://h", method: .post, headers: ["content-type": "mine"])
        let encodings: [any ParameterEncoding] = [
            URLEncoding.default, JSONEncoding.default, PropertyListEncoding.default,
        ]
        for encoding in encodings {
            let encoded = try encoding.encode(request, with: ["a": 1])
            #expect(encoded.allHTTPHeaderFields == ["content-type": "mine"])
        }
    }

    @Test func `a missing URL is an error`() throws {
        var request = try plainRequest()
        request.url = nil
        let error = #expect(throws: AFError.self) { try URLEncoding.default.encode(request, with: ["a": 1]) }
        guard case .parameterEncodingFailed(.missingURL)? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    // MARK: Values

    @Test func `arrays are encoded with brackets, without brackets, or with indices`() {
        #expect(pairs([1, 2]) == "k%5B%5D=1&k%5B%5D=2")
        #expect(pairs([1, 2], URLEncoding(arrayEncoding: .noBrackets)) == "k=1&k=2")
        #expect(pairs([1, 2], URLEncoding(arrayEncoding: .indexInBrackets)) == "k%5B0%5D=1&k%5B1%5D=2")
        #expect(pairs([[1], ["a": 2]]) == "k%5B%5D%5B%5D=1&k%5B%5D%5Ba%5D=2")
        #expect(pairs([Int]()) == "")
    }

    @Test func `Booleans are distinguished from numbers, whatever their source`() throws {
        let json = #"{"t": true, "f": false, "one": 1, "zero": 0, "real": 1.0}"#
        let parsed = try #require(
            JSONSerialization.jsonObject(with: Data(json.utf8)) as? Parameters
        )
        let literal = URLEncoding(boolEncoding: .literal)
        #expect(try query(parsed, .default) == "f=0&one=1&real=1&t=1&zero=0")
        #expect(try query(parsed, literal) == "f=false&one=1&real=1&t=true&zero=0")
        let values: [Any] = [
            true, NSNumber(value: true), Optional(true) as Any, 1, NSNumber(value: 1), Int8(1), UInt8(1),
            NSNumber(value: Int8(1)), 1.0,
        ]
        #expect(values.map { pairs($0) } == Array(repeating: "k=1", count: 9))
        let texts = values.map { pairs($0, literal) }
        #expect(texts == ["k=true", "k=true", "k=true"] + Array(repeating: "k=1", count: 6))
        #expect(pairs([true, false] as NSArray, literal) == "k%5B%5D=true&k%5B%5D=false")
    }

    @Test func `numbers are encoded in the same way on every run`() {
        let numbers: [(Any, String)] = [
            (1.0, "1"), (NSNumber(value: 1.0), "1"), (Float(2), "2"), (CGFloat(3), "3"),
            (Float16(0.5), "0.5"),
            (0.1, "0.1"), (Float(0.1), "0.1"), (NSNumber(value: Float(0.1)), "0.1"), (-0.0, "-0"),
            (1e300, "1e%2B300"), (Double.nan, "nan"), (-Double.infinity, "-inf"),
            (UInt64.max, "18446744073709551615"), (Int64.min, "-9223372036854775808"),
            (Int128.max, "170141183460469231731687303715884105727"), (Decimal(string: "1.10") ?? 0, "1.1"),
            (NSDecimalNumber(string: "12345678901234567890.5"), "12345678901234567890.5"),
        ]
        for (number, text) in numbers { #expect(pairs(number) == "k=\(text)") }
    }

    @Test func `nil is encoded as empty, and optionals as their values`() {
        #expect(pairs(NSNull()) == "k=")
        #expect(pairs(Int?.none as Any) == "k=")
        #expect(pairs(Int??.some(.none) as Any) == "k=")
        #expect(pairs(Int??.some(.some(3)) as Any) == "k=3")
        #expect(pairs([1, nil] as [Int?]) == "k%5B%5D=1&k%5B%5D=")
        #expect(pairs(["a": nil] as [String: Int?]) == "k%5Ba%5D=")
    }

    @Test func `other values are encoded by their description`() throws {
        struct Point { let x = 1 }
        #expect(pairs(Substring("ab")) == "k=ab")
        #expect(pairs(Character("é")) == "k=%C3%A9")
        #expect(pairs(HTTPMethod.get) == "k=get")
        #expect(pairs(try #require(URL(string: "http://h/a?b"))) == "k=http%3A//h/a?b")
        #expect(pairs(Point()) == "k=Point%28x%3A%201%29")
        #expect(pairs(Date(timeIntervalSince1970: 0)) == "k=1970-01-01%2000%3A00%3A00%20%2B0000")
        #expect(pairs(Date(timeIntervalSince1970: .nan)) == "k=nan%20s%20after%201970")
        #expect(pairs([1: "a", 10: "b"]) == "k%5B1%5D=a&k%5B10%5D=b")
    }

    @Test func `parameters are encoded in the same order on every run`() throws {
        let names = (0..<40).map { "n\($0)" }
        let numbers = Dictionary(uniqueKeysWithValues: names.map { ($0, ["y": 1, "x": 2]) })
        let sorted = names.sorted()
        #expect(
            try query(numbers)?.removingPercentEncoding
                == sorted.map { "\($0)[x]=2&\($0)[y]=1" }.joined(separator: "&")
        )
        #expect(pairs(numbers).hasPrefix("k%5Bn0%5D%5Bx%5D=2&k%5Bn0%5D%5By%5D=1&k%5Bn1%5D"))
        #expect(pairs(Set(names)) == sorted.map { "k%5B%5D=\($0)" }.joined(separator: "&"))
    }

    @Test func `the reserved characters of RFC 3986 are escaped, except slash and question mark`() {
        let encoding = URLEncoding.default
        #expect(encoding.escape(":#[]@!$&'()*+,;=") == "%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D")
        #expect(encoding.escape("/?") == "/?")
        #expect(encoding.escape("azAZ09-._~") == "azAZ09-._~")
        #expect(
            encoding.escape(" \"%<>\\^`{|}\u{7f}\r\n\0") == "%20%22%25%3C%3E%5C%5E%60%7B%7C%7D%7F%0D%0A%00"
        )
        #expect(encoding.escape("日本🇦🇹") == "%E6%97%A5%E6%9C%AC%F0%9F%87%A6%F0%9F%87%B9")
        // The text is not normalized, so that the server receives the original characters.
        #expect(encoding.escape("e\u{301}") == "e%CC%81")
    }

    @Test func `parameters nested too deep are an error`() throws {
        let deep = (0..<512).reduce(1 as Any) { value, _ in [value] }
        let query = try query(["deep": deep])
        let length = "deep=1".utf8.count + 512 * "%5B%5D".utf8.count
        #expect(query?.utf8.count == length)
        let error = #expect(throws: AFError.self) {
            try URLEncoding.default.encode(plainRequest(), with: ["ok": 1, "deeper": [deep]])
        }
        #expect((error?.underlyingError as? ParametersTooDeep)?.name == "deeper")
        #expect(error?.isParameterEncodingError == true)
        #expect(error?.localizedDescription.contains("\"deeper\" is nested more than 512 levels") == true)
        let pairs = URLEncoding.default.queryComponents(fromKey: "k", value: [1, [deep], 2])
        #expect(pairs.map(\.0) == ["k%5B%5D"])
    }

    @Test func `encoded parameters arrive unchanged`() async throws {
        let server = try ScriptedServer()
        let session = SessionManager(engine: try TransferEngine())
        let parameters: Parameters = ["a b": "ü&=+#?/%", "l": [1, true]]
        let query = "a%20b=%C3%BC%26%3D%2B%23?/%25&l%5B%5D=1&l%5B%5D=1"
        for method in [HTTPMethod.get, .post] {
            let request = try plainRequest("\(server.url)/p?x=1#f", method)
            _ = await session.request(try URLEncoding.default.encode(request, with: parameters)).response()
        }
        let received = server.requests
        #expect(received.map(\.target) == ["/p?x=1&\(query)", "/p?x=1"])
        #expect(received.last?.body == Array(query.utf8))
        let contentType = received.last?.values(of: "Content-Type")
        #expect(contentType == ["application/x-www-form-urlencoded; charset=utf-8"])
    }

    // MARK: Comparison with Python

    private static let scalars: [Unicode.Scalar] = Array(
        "ab019 -._~/?:#[]@!$&'()*+,;=%\"<>\\^`{|}\u{0}\r\n\u{7f}éß日🇦".unicodeScalars
    )

    @Test(arguments: [URLEncoding.Destination.queryString, .httpBody])
    func `Python decodes random pairs`(destination: URLEncoding.Destination) async throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        var parameters: [String: String] = [:]
        for _ in 0..<200 {
            let length = Int.random(in: 0...12, using: &generator)
            let texts = (0..<2).map { _ in
                String(
                    String.UnicodeScalarView(
                        (0..<length).map { _ in Self.scalars.randomElement(using: &generator)! }
                    )
                )
            }
            parameters[texts[0]] = texts[1]
        }
        let encoded = try URLEncoding(destination: destination).encode(plainRequest(), with: parameters)
        let text = destination == .httpBody ? encoded.bodyText : encoded.url?.query(percentEncoded: true)
        let script = """
            import json, sys, urllib.parse
            pairs = urllib.parse.parse_qsl(sys.argv[1], keep_blank_values=True, strict_parsing=True)
            print(json.dumps(pairs))
            """
        let output = try await python(script, [#require(text)])
        let read = try JSONDecoder().decode([[String]].self, from: Data(output.utf8))
        let expected = parameters.sorted { $0.key < $1.key }.map { [$0.key, $0.value] }
        #expect(
            read.map { $0.map { Array($0.utf8) } } == expected.map { $0.map { Array($0.utf8) } },
            "seed \(seed)"
        )
    }
}

extension String {
    /// The query with its pairs sorted. The guides show parameters in the order of the source, but the client sorts
    /// them.
    fileprivate var sortedPairs: String {
        split(separator: "&").sorted {
            $0.prefix { $0 != "[" && $0 != "=" } < $1.prefix { $0 != "[" && $0 != "=" }
        }
        .joined(separator: "&")
    }
}
