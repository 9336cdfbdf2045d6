internal import Foundation

/// A JSON value. Unlike the values of `JSONSerialization`, it tells numbers from Booleans.
enum JSONValue: Hashable, Sendable, Codable {
    case null
    case boolean(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(_ data: Data) throws {
        self = try JSONDecoder().decode(JSONValue.self, from: data)
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .boolean(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .boolean(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }

    var bytes: [UInt8] { get throws { Array(try JSONEncoder().encode(self)) } }

    /// The value of a member; `nil` if there is none, or if this is not an object.
    subscript(name: String) -> JSONValue? { members[name] }

    /// The members of an object; empty for other values.
    var members: [String: JSONValue] {
        if case .object(let members) = self { members } else { [:] }
    }

    /// The elements of an array; empty for other values.
    var elements: [JSONValue] {
        if case .array(let elements) = self { elements } else { [] }
    }

    var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    var number: Double? {
        if case .number(let value) = self { value } else { nil }
    }

    /// Returns the object with another value of a member; without the member if the value is `nil`.
    func setting(_ name: String, to value: JSONValue?) -> JSONValue {
        var members = members
        members[name] = value
        return .object(members)
    }
}
