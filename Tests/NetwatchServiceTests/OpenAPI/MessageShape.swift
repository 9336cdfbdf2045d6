internal import Foundation
internal import OfflineQueue

/// The form of a type in JSON: what its `init(from:)` asks a decoder for.
indirect enum MessageShape: Hashable {
    case scalar(String)
    case array(MessageShape)
    case object([String: Member])
    /// An object with any names.
    case map

    struct Member: Hashable {
        let shape: MessageShape
        let isRequired: Bool
    }

    /// - Throws: The error of the type's initializer, if no value satisfies it.
    init<Message: Decodable>(of type: Message.Type) throws {
        self = try ShapeDecoder.decode(type).shape
    }
}

/// A decoder that returns a value for everything that it is asked for, and records it.
private struct ShapeDecoder: Decoder {
    final class Record {
        var shape = MessageShape.object([:])
    }

    let record = Record()
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    static func decode<Value: Decodable>(_ type: Value.Type) throws -> (value: Value, shape: MessageShape) {
        switch type {
        case is String.Type: return ("" as! Value, .scalar("string"))
        case is Bool.Type: return (false as! Value, .scalar("boolean"))
        case is Double.Type: return (0.0 as! Value, .scalar("number"))
        case is Date.Type: return (Date(timeIntervalSince1970: 0) as! Value, .scalar("string"))
        case is [String: Int].Type: return ([String: Int]() as! Value, .map)
        case is QueueCounts.Type: return (QueueCounts() as! Value, .map)
        case is QueueRequest.Header.Type:
            return (QueueRequest.Header(name: "", value: "") as! Value, .array(.scalar("string")))
        case is Data.Type: return (Data() as! Value, .scalar("string"))
        // Some of its members exclude each other.
        case is EnqueueOptions.Type: return (EnqueueOptions() as! Value, .map)
        case let names as any (CaseIterable & RawRepresentable<String>).Type:
            return (first(names) as! Value, .scalar("string"))
        case let integer as any FixedWidthInteger.Type: return (zero(integer) as! Value, .scalar("integer"))
        default:
            let decoder = ShapeDecoder()
            return (try Value(from: decoder), decoder.record.shape)
        }
    }

    private static func first<Names: CaseIterable>(_ names: Names.Type) -> Any { names.allCases.first! }

    private static func zero<Integer: FixedWidthInteger>(_ type: Integer.Type) -> Any { Integer.zero }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Members<Key>(record: record))
    }

    func unkeyedContainer() -> any UnkeyedDecodingContainer { Elements(record: record) }

    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Unsupported() }

    struct Unsupported: Error {}

    private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let record: Record
        let codingPath: [any CodingKey] = []
        let allKeys: [Key] = []
        private let optional = Names()

        init(record: Record) { self.record = record }

        final class Names { var names: Set<String> = [] }

        func contains(_ key: Key) -> Bool { true }

        /// Called before `decode` for a member that may be missing.
        func decodeNil(forKey key: Key) -> Bool {
            optional.names.insert(key.stringValue)
            return false
        }

        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            let (value, shape) = try ShapeDecoder.decode(type)
            guard case .object(var members) = record.shape else { throw Unsupported() }
            let isRequired = !optional.names.contains(key.stringValue)
            members[key.stringValue] = MessageShape.Member(shape: shape, isRequired: isRequired)
            record.shape = .object(members)
            return value
        }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type,
            forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> { throw Unsupported() }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            throw Unsupported()
        }

        func superDecoder() throws -> any Decoder { throw Unsupported() }
        func superDecoder(forKey key: Key) throws -> any Decoder { throw Unsupported() }
    }

    /// An array with one element.
    private struct Elements: UnkeyedDecodingContainer {
        let record: Record
        let codingPath: [any CodingKey] = []
        let count: Int? = 1
        var currentIndex = 0
        var isAtEnd: Bool { currentIndex == 1 }

        init(record: Record) { self.record = record }

        mutating func decodeNil() -> Bool { false }

        mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            currentIndex = 1
            let (value, shape) = try ShapeDecoder.decode(type)
            record.shape = .array(shape)
            return value
        }

        mutating func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type
        ) throws -> KeyedDecodingContainer<Nested> { throw Unsupported() }

        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Unsupported() }
        mutating func superDecoder() throws -> any Decoder { throw Unsupported() }
    }
}
