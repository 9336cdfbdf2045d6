internal import Foundation
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

/// Requests that are built from docs/openapi.json, and the responses to them.
@Suite(.timeLimit(.minutes(5))) struct OpenAPIConformanceTests {
    private static let document = OpenAPIDocument.current

    /// Returns how a response differs from its documentation.
    private func faults(_ response: RawResponse, _ documented: JSONValue?) throws -> [String] {
        guard let documented else { return ["the status \(response.status) is not documented"] }
        var faults = response.status < 500 ? [] : ["the status is \(response.status)"]
        let validator = SchemaValidator(document: Self.document, isStrict: true)
        for (name, header) in documented["headers"]?.members ?? [:] {
            if let value = response.headers[name.lowercased()] {
                let value = Double(value).map(JSONValue.number) ?? .string(value)
                faults += validator.faults(of: value, header["schema"] ?? .null, at: name)
            } else if header["required"] == .boolean(true) {
                faults.append("the header \(name) is missing")
            }
        }
        let type = response.headers["content-type"] ?? ""
        guard let schema = documented["content"]?[type]?["schema"] else {
            return faults + ["the media type `\(type)` is not documented"]
        }
        let isJSON = type.hasSuffix("json")
        let body = isJSON ? try JSONValue(Data(response.body.utf8)) : .string(response.body)
        return faults + validator.faults(of: body, schema)
    }

    // MARK: Valid requests

    /// Returns the requests of the examples: with all parameters, and with only the required ones.
    private func examples(_ operation: OpenAPIDocument.Operation) throws -> [OpenAPIRequest] {
        var request = OpenAPIRequest(method: operation.method.rawValue, path: operation.path)
        for parameter in operation.parameters(in: "path") {
            request.names[parameter.name] = try #require(parameter.example).queryText
        }
        let query = operation.parameters(in: "query")
        var full = request, brief = request
        full.query = query.flatMap { parameter in parameter.example.map(parameter.items) ?? [] }
        brief.query = query.filter(\.isRequired).flatMap { parameter in
            parameter.example.map(parameter.items) ?? []
        }
        guard let body = operation.body else { return [full, brief] }
        var requests: [OpenAPIRequest] = body.isRequired ? [] : [brief]
        // The service does not read the media type.
        for (example, type) in body.examples.flatMap({ [($0, body.type), ($0, "text/plain")] }) {
            full.headers = ["Content-Type: \(type)"]
            full.body = try body.bytes(example)
            requests.append(full)
        }
        return requests
    }

    @Test(arguments: document.operations)
    func `an example is accepted`(operation: OpenAPIDocument.Operation) async throws {
        for request in try examples(operation) {
            let fixture = try await OpenAPIFixture()
            let response = try await fixture.responses(to: [request])[0]
            #expect((200...299).contains(response.status), "\(request.target): \(response.body)")
            let faults = try faults(response, operation.response(response.status))
            #expect(faults == [], "\(request.target): \(response.body.prefix(1000))")
            await fixture.stop()
        }
    }

    @Test func `the examples of bodies are valid`() throws {
        let validator = SchemaValidator(document: Self.document)
        for operation in Self.document.operations {
            for example in operation.body?.examples ?? [] {
                let schema = try #require(operation.body).schema
                #expect(validator.faults(of: example, schema) == [], "\(operation.name)")
            }
        }
    }

    // MARK: Wrong requests

    /// A wrong request, and the statuses with which the service may refuse it.
    private struct WrongRequest {
        let request: OpenAPIRequest
        var statuses: Set<Int> = [400]
    }

    /// Values of which each schema refuses some.
    private static let candidates: [JSONValue] = [
        .null, .boolean(true), .number(-1), .number(1.5), .number(1e20), .string(""), .string("ü"),
        .string("zzz"), .string(String(repeating: "a", count: 256)),
        .string(String(repeating: "a", count: 20_000)), .array([]), .array([.number(1)]),
        .array(Array(repeating: .string("a"), count: 10_001)), .object([:]), .object(["zzz": .number(1)]),
    ]

    private func wrongTargets(_ example: OpenAPIRequest, _ operation: OpenAPIDocument.Operation)
        -> [WrongRequest]
    {
        let query = operation.parameters(in: "query")
        let own = query.flatMap { parameter in wrongItems(parameter).map { (parameter, $0) } }
        let queries =
            [["zzz=1"], ["zzz"], ["zzz=%FF"], ["zzz=%00"], ["zzz=%zz"]].map { example.query + $0 }
            + own.map { parameter, items in
                example.query.filter { !$0.hasPrefix("\(parameter.name)=") } + items
            }
        let names = example.names.keys.sorted().flatMap { name in ["%FF", "%00", "zzz"].map { (name, $0) } }
        return queries.map { query in
            var request = example
            request.query = query
            return WrongRequest(request: request)
        }
            + names.map { name, value in
                var request = example
                request.names[name] = value
                return WrongRequest(request: request, statuses: [400, 404])
            }
    }

    /// Returns lists of query items with a wrong value of a parameter.
    private func wrongItems(_ parameter: OpenAPIDocument.Parameter) -> [[String]] {
        let texts = Self.candidates.compactMap(\.string) + ["-1", "1.5", "99999999999999999999", "nan"]
        let validator = SchemaValidator(document: Self.document)
        let isList = parameter.schema["type"] == .string("array")
        // Longer targets have another error.
        let wrong = texts.filter { text in
            let value = value(text, of: isList ? parameter.schema["items"]! : parameter.schema)
            return text.count < 1000
                && !validator.faults(of: isList ? .array([value]) : value, parameter.schema).isEmpty
        }
        let valid = parameter.example.map(parameter.items) ?? []
        return wrong.map { ["\(parameter.name)=\(JSONValue.string($0).queryText)"] }
            + (isList || valid.isEmpty ? [] : [valid + valid]) + (parameter.isRequired ? [[]] : [])
    }

    /// Returns a text of a query as a value; as a string if the schema's type has no such value.
    private func value(_ text: String, of schema: JSONValue) -> JSONValue {
        switch schema["type"]?.string {
        case "integer": Int64(text).map { JSONValue.number(Double($0)) } ?? .string(text)
        case "number": Double(text).map(JSONValue.number) ?? .string(text)
        case "boolean": Bool(text).map(JSONValue.boolean) ?? .string(text)
        default: .string(text)
        }
    }

    private func wrongBodies(_ example: OpenAPIRequest, _ body: OpenAPIDocument.Body) throws -> [WrongRequest]
    {
        let tooLong = Array(repeating: UInt8(ascii: " "), count: body.maximumBytes + 1)
        var request = example
        request.body = tooLong
        let refused = WrongRequest(request: request, statuses: [413])
        guard body.isJSON else { return [refused] }
        let texts =
            ["{", "[]", "5", "null", "\"x\"", "{\"zzz\":1}", "{\"a\":1,\"a\":1}"]
            + (body.isRequired ? [""] : [])
        var bodies =
            texts.map { Array($0.utf8) } + [[0xFF], Array("{\"a\":\"".utf8) + [0xFF] + Array("\"}".utf8)]
        for example in body.examples {
            bodies += try wrongMessages(example, body.schema).map { try $0.bytes }
        }
        return [refused]
            + bodies.map { body in
                request.body = body
                return WrongRequest(request: request)
            }
    }

    /// Returns messages that differ from a valid one in one member, and that the schema refuses.
    private func wrongMessages(_ example: JSONValue, _ schema: JSONValue) -> [JSONValue] {
        let validator = SchemaValidator(document: Self.document)
        let properties = schema["properties"]?.members ?? [:]
        let changed = properties.keys.sorted().flatMap { name in
            ([nil] + Self.candidates.map(Optional.some)).map { example.setting(name, to: $0) }
        }
        let wrong = changed.filter { !validator.faults(of: $0, schema).isEmpty }
        let nested = example.members.filter { !$0.value.members.isEmpty }.flatMap { name, value in
            let property = properties[name] ?? .null
            let schema = Self.document.resolved(property["anyOf"]?.elements.first ?? property)
            return wrongMessages(value, schema).map { example.setting(name, to: $0) }
        }
        return wrong + nested + [example.setting("zzz", to: .number(1))]
    }

    @Test(arguments: document.operations)
    func `a wrong request is refused as documented`(operation: OpenAPIDocument.Operation) async throws {
        let example = try #require(try examples(operation).last)
        var wrong = wrongTargets(example, operation)
        if let body = operation.body { wrong += try wrongBodies(example, body) }
        let fixture = try await OpenAPIFixture()
        let responses = try await fixture.responses(to: wrong.map(\.request))
        for (wrong, response) in zip(wrong, responses) {
            let sent = String(decoding: wrong.request.body?.prefix(300) ?? [], as: UTF8.self)
            #expect(
                wrong.statuses.contains(response.status),
                "\(wrong.request.target) \(sent): \(response.status) \(response.body)"
            )
            let faults = try faults(response, operation.response(response.status))
            #expect(faults == [], "\(wrong.request.target) \(sent): \(response.body)")
        }
        await fixture.stop()
    }

    // MARK: Methods and paths

    @Test func `an undocumented method gets 405 with the documented ones`() async throws {
        let fixture = try await OpenAPIFixture()
        let documented = Self.document.root["components"]?["responses"]?["MethodNotAllowed"]
        for (path, operations) in Dictionary(grouping: Self.document.operations, by: \.path) {
            let methods = Set(operations.map(\.method.rawValue))
            let allowed = methods.union(methods.contains("GET") ? ["HEAD"] : [])
            let others = Set(["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]).subtracting(
                allowed
            )
            let example = try #require(try examples(operations[0]).first)
            let requests = others.sorted().map {
                OpenAPIRequest(method: $0, path: path, names: example.names)
            }
            for (request, response) in zip(requests, try await fixture.responses(to: requests)) {
                #expect(response.status == 405, "\(request.method) \(path)")
                #expect(response.headers["allow"] == allowed.sorted().joined(separator: ", "))
                guard request.method != "HEAD" else { continue }
                #expect(try faults(response, documented) == [], "\(request.method) \(path)")
            }
        }
        await fixture.stop()
    }

    @Test func `HEAD is accepted wherever GET is`() async throws {
        let fixture = try await OpenAPIFixture()
        for operation in Self.document.operations where operation.method == .GET {
            var request = try #require(try examples(operation).first)
            request.method = "HEAD"
            let response = try await fixture.responses(to: [request])[0]
            #expect(response.status == 200, "\(operation.name)")
        }
        await fixture.stop()
    }

    @Test func `an undocumented path gets 404`() async throws {
        let fixture = try await OpenAPIFixture()
        let documented = Self.document.root["components"]?["responses"]?["NotFound"]
        let requests = ["/v1", "/v1/zzz", "/v1/requests/"].map { OpenAPIRequest(method: "GET", path: $0) }
        for response in try await fixture.responses(to: requests) {
            #expect(response.status == 404)
            #expect(try faults(response, documented) == [])
        }
        await fixture.stop()
    }
}
