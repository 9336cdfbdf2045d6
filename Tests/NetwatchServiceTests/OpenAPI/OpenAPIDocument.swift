internal import Foundation
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import Testing

@testable internal import NetwatchService

/// docs/openapi.json.
struct OpenAPIDocument: Sendable {
    let root: JSONValue

    static let current = try! OpenAPIDocument()

    private init() throws {
        root = try JSONValue(Data(Repository.text("docs/openapi.json").utf8))
    }

    /// Returns the value to which a reference refers, and every other value unchanged.
    func resolved(_ value: JSONValue) -> JSONValue {
        guard let reference = value["$ref"]?.string else { return value }
        return reference.split(separator: "/").dropFirst().reduce(root) { $0[String($1)] ?? .null }
    }

    func schema(_ name: String) -> JSONValue {
        resolved(.object(["$ref": .string("#/components/schemas/\(name)")]))
    }

    /// The operations, sorted by their paths and methods.
    var operations: [Operation] {
        (root["paths"] ?? .null).members.sorted { $0.key < $1.key }.flatMap { path, item in
            item.members.sorted { $0.key < $1.key }.map { method, description in
                Operation(
                    method: HTTPMethod(rawValue: method.uppercased()),
                    path: path,
                    description: description,
                    document: self
                )
            }
        }
    }

    /// A method of a path.
    struct Operation: Sendable, CustomTestStringConvertible {
        let method: HTTPMethod
        let path: String
        let description: JSONValue
        let document: OpenAPIDocument

        var name: String { "\(method.rawValue) \(path)" }
        var testDescription: String { name }

        /// The parameters that are sent in the path, in the query or in the header.
        func parameters(in place: String) -> [Parameter] {
            (description["parameters"]?.elements ?? []).map(document.resolved)
                .filter { $0["in"] == .string(place) }.map(Parameter.init)
        }

        /// Whether the TCP listener serves the operation as well.
        var isReadOnly: Bool { description["servers"]?.elements.count == 2 }

        /// The response with a status; `nil` if it is not documented.
        func response(_ status: Int) -> JSONValue? {
            (description["responses"]?["\(status)"]).map(document.resolved)
        }

        /// The body that the operation accepts; `nil` if it accepts none.
        var body: Body? {
            guard let body = description["requestBody"], let (type, content) = body["content"]?.members.first
            else { return nil }
            return Body(
                type: type,
                schema: document.resolved(content["schema"] ?? .null),
                isRequired: body["required"] == .boolean(true),
                maximumBytes: Int(body["x-max-bytes"]?.number ?? 0),
                examples: (content["examples"]?.members ?? [:]).sorted { $0.key < $1.key }
                    .compactMap { $0.value["value"] }
            )
        }
    }

    /// A parameter of an operation.
    struct Parameter: Sendable {
        let name: String
        let schema: JSONValue
        let isRequired: Bool
        let example: JSONValue?

        fileprivate init(_ description: JSONValue) {
            name = description["name"]?.string ?? ""
            schema = description["schema"] ?? .null
            isRequired = description["required"] == .boolean(true)
            example = description["example"]
        }
    }

    /// The body of a request.
    struct Body: Sendable {
        let type: String
        let schema: JSONValue
        let isRequired: Bool
        let maximumBytes: Int
        let examples: [JSONValue]

        var isJSON: Bool { type == "application/json" }

        /// Returns the bytes of an example.
        func bytes(_ example: JSONValue) throws -> [UInt8] {
            isJSON ? try example.bytes : Array((example.string ?? "").utf8)
        }
    }
}
