import ClientCore
import Foundation
import FoundationNetworking
import NetwatchTestSupport
import Testing

/// A program's custom encoding: a list of strings as JSON, whatever the parameters are.
private struct TextListEncoding: ParameterEncoding {
    private let list: [String]

    init(list: [String]) { self.list = list }

    func encode(_ urlRequest: URLRequestConvertible, with parameters: Parameters?) throws -> URLRequest {
        var urlRequest = try urlRequest.asURLRequest()
        let data = try JSONSerialization.data(withJSONObject: list, options: [])
        if urlRequest.value(forHTTPHeaderField: "Content-Type") == nil {
            urlRequest.setValue("application/json", forHTTPHeaderField: "Content-Type")
        }
        urlRequest.httpBody = data
        return urlRequest
    }
}

@Suite(.timeLimit(.minutes(5))) struct ParameterEncodingTests {
    private let form = "application/x-www-form-urlencoded; charset=utf-8"

    // MARK: URLs and forms

    @Test func `parameters of a GET are its query`() async throws {
        let httpbin = try await HTTPBin.shared()
        let url = "\(httpbin.url)/get"
        let parameters: Parameters = ["foo": "bar"]
        for request in [
            ClientCore.request(url, parameters: parameters),
            ClientCore.request(url, parameters: parameters, encoding: URLEncoding.default),
            ClientCore.request(
                url,
                parameters: parameters,
                encoding: URLEncoding(destination: .methodDependent)
            ),
        ] {
            let echo = try await request.echo
            #expect(echo.args == ["foo": "bar"])
            #expect(echo.url == "\(url)?foo=bar")
            #expect(echo.headers["Content-Type"] == nil)
        }
    }

    @Test func `parameters are appended to an existing query`() async throws {
        let httpbin = try await HTTPBin.shared()
        let url = "\(httpbin.url)/anything?first=1"
        for method in [HTTPMethod.get, .delete] {
            let echo = try await ClientCore.request(url, method: method, parameters: ["second": 2]).echo
            #expect(echo.url == "\(url)&second=2")
        }
    }

    @Test func `a request without parameters is sent unchanged`() async throws {
        let httpbin = try await HTTPBin.shared()
        let echo = try await ClientCore.request("\(httpbin.url)/anything?a=1", method: .post).echo
        #expect(echo.url == "\(httpbin.url)/anything?a=1")
        #expect(echo.form == [:])
        #expect(echo.headers["Content-Type"] == nil)
    }

    @Test func `parameters of a POST are a form, with brackets for arrays and dictionaries`() async throws {
        let httpbin = try await HTTPBin.shared()
        let url = "\(httpbin.url)/post"
        let parameters: Parameters = [
            "foo": "bar",
            "baz": ["a", 1],
            "qux": ["x": 1, "y": 2, "z": 3],
        ]
        for request in [
            ClientCore.request(url, method: .post, parameters: parameters),
            ClientCore.request(url, method: .post, parameters: parameters, encoding: URLEncoding.default),
            ClientCore.request(url, method: .post, parameters: parameters, encoding: URLEncoding.httpBody),
        ] {
            let echo = try await request.echo
            #expect(
                echo.form == [
                    "foo": "bar", "baz[]": ["a", "1"], "qux[x]": "1", "qux[y]": "2", "qux[z]": "3",
                ]
            )
            #expect(echo.headers["Content-Type"] == form)
        }
    }

    @Test func `the fields of a form are sorted`() async throws {
        let parameters: Parameters = ["c": 1, "a": ["z": 1, "y": 2], "b": [2, 1]]
        let request = ClientCore.request(
            "http://127.0.0.1:1/",
            method: .post,
            parameters: parameters
        )
        let body = try #require(request.request?.httpBody)
        #expect(String(decoding: body, as: UTF8.self) == "a%5By%5D=2&a%5Bz%5D=1&b%5B%5D=2&b%5B%5D=1&c=1")
    }

    @Test func `an encoding can override the destination of parameters`() async throws {
        let httpbin = try await HTTPBin.shared()
        let url = "\(httpbin.url)/anything"
        let query = try await ClientCore.request(
            url,
            method: .post,
            parameters: ["foo": "bar"],
            encoding: URLEncoding.queryString
        ).echo
        #expect(query.args == ["foo": "bar"])
        #expect(query.form == [:])
        let body = try await ClientCore.request(
            url,
            method: .delete,
            parameters: ["foo": "bar"],
            encoding: URLEncoding.httpBody
        ).echo
        #expect(body.args == [:])
        #expect(body.form == ["foo": "bar"])
    }

    @Test func `an existing Content-Type is kept`() async throws {
        let httpbin = try await HTTPBin.shared()
        let echo = try await ClientCore.request(
            "\(httpbin.url)/post",
            method: .post,
            parameters: ["foo": "bar"],
            headers: ["Content-Type": "application/x-www-form-urlencoded"]
        ).echo
        #expect(echo.headers["Content-Type"] == "application/x-www-form-urlencoded")
        #expect(echo.form == ["foo": "bar"])
    }

    @Test func `Booleans are encoded as numbers or literals`() async throws {
        let httpbin = try await HTTPBin.shared()
        let parameters: Parameters = ["yes": true, "no": false, "one": 1]
        let numeric = try await ClientCore.request("\(httpbin.url)/get", parameters: parameters).echo
        #expect(numeric.args == ["yes": "1", "no": "0", "one": "1"])
        let encoding = URLEncoding(boolEncoding: .literal)
        let literal = try await ClientCore.request(
            "\(httpbin.url)/get",
            parameters: parameters,
            encoding: encoding
        ).echo
        #expect(literal.args == ["yes": "true", "no": "false", "one": "1"])
    }

    @Test func `arrays are encoded with or without brackets`() async throws {
        let httpbin = try await HTTPBin.shared()
        let parameters: Parameters = ["foo": [1, 2]]
        let brackets = try await ClientCore.request("\(httpbin.url)/get", parameters: parameters).echo
        #expect(brackets.args == ["foo[]": ["1", "2"]])
        let encoding = URLEncoding(arrayEncoding: .noBrackets)
        let none = try await ClientCore.request(
            "\(httpbin.url)/get",
            parameters: parameters,
            encoding: encoding
        ).echo
        #expect(none.args == ["foo": ["1", "2"]])
    }

    @Test func `every character is preserved in a query and in a form`() async throws {
        let httpbin = try await HTTPBin.shared()
        let text = ":#[]@!$&'()*+,;=/?%\" \\é日🧭\n"
        for method in [HTTPMethod.get, .post] {
            let request = ClientCore.request(
                "\(httpbin.url)/anything",
                method: method,
                parameters: ["te&xt=": text]
            )
            let echo = try await request.echo
            let expected: JSONValue = ["te&xt=": .text(text)]
            #expect((method == .get ? echo.args : echo.form) == expected)
        }
        let request = ClientCore.request("http://127.0.0.1:1/", parameters: ["q": ":#[]@!$&'()*+,;=/? "])
        let query = request.request?.url?.query
        #expect(query == "q=%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D/?%20")
    }

    // MARK: JSON and property lists

    @Test func `parameters can be JSON`() async throws {
        let httpbin = try await HTTPBin.shared()
        let parameters: Parameters = ["foo": [1, 2, 3], "bar": ["baz": "qux"], "yes": true]
        for encoding in [JSONEncoding.default, JSONEncoding(options: []), JSONEncoding.prettyPrinted] {
            let echo = try await ClientCore.request(
                "\(httpbin.url)/post",
                method: .post,
                parameters: parameters,
                encoding: encoding
            ).echo
            #expect(echo.json == ["foo": [1, 2, 3], "bar": ["baz": "qux"], "yes": true])
            #expect(echo.headers["Content-Type"] == "application/json")
            #expect(echo.data?.contains("\n") == encoding.options.contains(.prettyPrinted))
        }
    }

    @Test func `any JSON value can be encoded into a request`() async throws {
        let httpbin = try await HTTPBin.shared()
        let urlRequest = try URLRequest(url: "\(httpbin.url)/post", method: .post)
        let encoded = try JSONEncoding.default.encode(urlRequest, withJSONObject: ["a", "b"])
        #expect(try await ClientCore.request(encoded).echo.json == ["a", "b"])
    }

    @Test func `a value that JSON cannot contain is an error`() async throws {
        let error: Error? = await once { done in
            ClientCore.request(
                "http://127.0.0.1:1/",
                method: .post,
                parameters: ["day": Date()],
                encoding: JSONEncoding.default
            ).response { done($0.error) }
        }
        guard case .parameterEncodingFailed(.jsonEncodingFailed)? = error as? AFError else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test func `parameters can be a property list`() async throws {
        let httpbin = try await HTTPBin.shared()
        let parameters: Parameters = ["foo": "bar", "list": [1, 2]]
        for encoding in [PropertyListEncoding.default, .xml, .binary] {
            let echo = try await ClientCore.request(
                "\(httpbin.url)/post",
                method: .post,
                parameters: parameters,
                encoding: encoding
            ).echo
            #expect(echo.headers["Content-Type"] == "application/x-plist")
            let data = try body(echo)
            var format = PropertyListSerialization.PropertyListFormat.openStep
            let list = try PropertyListSerialization.propertyList(from: data, options: [], format: &format)
            let fields = try #require(list as? [String: Any])
            #expect(fields["foo"] as? String == "bar")
            #expect(fields["list"] as? [Int] == [1, 2])
            #expect(format == encoding.format)
        }
    }

    /// Returns the body that httpbin received. httpbin returns data that is not text as a `data:` URL.
    private func body(_ echo: Echo) throws -> Data {
        let text = try #require(echo.data)
        guard let comma = text.range(of: ";base64,"), text.hasPrefix("data:") else { return Data(text.utf8) }
        return try #require(Data(base64Encoded: String(text[comma.upperBound...])))
    }

    // MARK: Custom encodings

    @Test func `a program can define an encoding`() async throws {
        let httpbin = try await HTTPBin.shared()
        let echo = try await ClientCore.request(
            "\(httpbin.url)/post",
            method: .post,
            encoding: TextListEncoding(list: ["a", "b"])
        ).echo
        #expect(echo.json == ["a", "b"])
        #expect(echo.headers["Content-Type"] == "application/json")
    }

    @Test func `an encoding can be used without a session`() throws {
        let url = try #require(URL(string: "https://httpbin.org/get"))
        let urlRequest = URLRequest(url: url)
        let parameters: Parameters = ["foo": "bar"]
        let encodedURLRequest = try URLEncoding.queryString.encode(urlRequest, with: parameters)
        #expect(encodedURLRequest.url?.absoluteString == "https://httpbin.org/get?foo=bar")
        #expect(encodedURLRequest.httpBody == nil)
    }
}
