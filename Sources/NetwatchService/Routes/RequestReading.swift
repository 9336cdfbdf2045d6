internal import Foundation
internal import NIOHTTP1
internal import OfflineQueue

/// A message with members that accept only certain texts.
protocol ChoiceMessage {
    /// The accepted texts, by the paths of the members in JSON, such as `filter.state`.
    static var choices: [String: [String]] { get }
}

/// Typed access to a request's body and query. Errors state what is wrong with the value.
extension ControlRequest {
    /// Decodes the body as a message. Rejects members for which the message has no property.
    ///
    /// - Parameter userInfo: What the decoder passes to the message.
    func message<Message: Decodable>(
        _ type: Message.Type,
        userInfo: [CodingUserInfoKey: any Sendable] = [:]
    ) throws(Problem) -> Message {
        let message = try decoded(type, userInfo)
        // The decoder also accepts `ttlSeconds` for `ttl_seconds`, so the names are checked separately.
        try MemberNames(of: body).check(against: message)
        return message
    }

    private func decoded<Message: Decodable>(
        _ type: Message.Type,
        _ userInfo: [CodingUserInfoKey: any Sendable]
    ) throws(Problem) -> Message {
        let (data, decoder) = (Data(body), ControlMessage.decoder)
        decoder.userInfo = userInfo
        do {
            return try decoder.decode(type, from: data)
        } catch let error as QueueError {
            throw Problem(error)
        } catch {
            let choices = (type as? any ChoiceMessage.Type)?.choices ?? [:]
            let failure = DecodingFailure(error, in: data, choices: choices)
            throw .malformedBody("the body is not the expected JSON: \(failure)")
        }
    }

    /// Decodes the body as a message; returns `nil` for an empty body.
    func optionalMessage<Message: Decodable>(_ type: Message.Type) throws(Problem) -> Message? {
        body.isEmpty ? nil : try message(type)
    }

    /// Rejects unknown query names, and repeated names that accept only one value. If the service ignored them, the
    /// client would assume that they take effect.
    ///
    /// - Parameters:
    ///   - accepted: The accepted names.
    ///   - lists: The accepted names that may be repeated.
    func checkQuery(takes accepted: [String], lists: [String]) throws(Problem) {
        var seen: Set<String> = []
        for item in query {
            guard accepted.contains(item.name) else {
                throw .unknownName(item.name, code: "unknown_parameter", accepted: accepted)
            }
            guard seen.insert(item.name).inserted || lists.contains(item.name) else {
                throw Problem(
                    .badRequest,
                    code: "repeated_parameter",
                    detail: "`\(item.name)` occurs twice; it accepts one value"
                )
            }
        }
    }

    /// Returns the first value of a query name; empty if the name has no value, `nil` if the query does not contain it.
    func value(of name: String) -> String? {
        query.first { $0.name == name }.map { $0.value ?? "" }
    }

    /// Returns all values of a query name.
    func values(of name: String) -> [String] {
        query.filter { $0.name == name }.map { $0.value ?? "" }
    }

    /// Returns an integer of the query; `nil` if the query does not contain the name.
    func number<Number: FixedWidthInteger>(_ name: String, in range: ClosedRange<Number>) throws(Problem)
        -> Number?
    {
        guard let text = value(of: name) else { return nil }
        guard let number = Number(text), range.contains(number) else {
            throw .malformedQuery(name, text, accepted: "\(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// Returns the id of a user in the query; `nil` if the query does not contain `submitter`.
    func submitter() throws(Problem) -> UInt32? { try number("submitter", in: 0...UInt32.max) }

    /// Returns a number of seconds of the query, which may have a fraction; `nil` if the query does not contain the
    /// name.
    func seconds(_ name: String, atMost longest: Duration) throws(Problem) -> Duration? {
        guard let text = value(of: name) else { return nil }
        let longest = longest.components.seconds
        guard let seconds = Double(text), (0...Double(longest)).contains(seconds) else {
            throw .malformedQuery(name, text, accepted: "0 to \(longest) seconds")
        }
        return .seconds(seconds)
    }

    /// Returns a Boolean of the query, `true` or `false`; `nil` if the query does not contain the name.
    func flag(_ name: String) throws(Problem) -> Bool? {
        guard let text = value(of: name) else { return nil }
        guard let flag = Bool(text) else { throw .malformedQuery(name, text, accepted: "true or false") }
        return flag
    }
}

/// A description of why a body could not be decoded. It uses the terms of JSON, because clients do not know the Swift
/// types and property names.
struct DecodingFailure: CustomStringConvertible {
    let description: String

    /// - Parameters:
    ///   - body: The body that could not be decoded.
    ///   - choices: The texts that members accept, by the paths of the members, such as `filter.state`.
    init(_ error: any Error, in body: Data, choices: [String: [String]] = [:]) {
        description =
            switch error {
            case DecodingError.keyNotFound(let key, let context):
                "`\(Self.path(context.codingPath + [key]))` is missing"
            case DecodingError.typeMismatch(let type, let context),
                DecodingError.valueNotFound(let type, let context):
                Self.mismatch(of: type, context, in: body, choices)
            case DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty:
                UnfitNumbers(in: body)?.description
                    ?? "it is not valid JSON, or a number in it is out of range"
            case DecodingError.dataCorrupted(let context):
                "\(Self.subject(context)): \(context.debugDescription)"
            default: "\(error)"
            }
    }

    /// Returns the description of a value of the wrong type, with the value and what is accepted instead.
    private static func mismatch(
        of type: any Any.Type,
        _ context: DecodingError.Context,
        in body: Data,
        _ choices: [String: [String]]
    ) -> String {
        var accepted = name(of: type)
        // The elements of an array have the same choices.
        let member = path(context.codingPath.filter { $0.intValue == nil })
        if type is String.Type, let texts = choices[member] {
            accepted += ", one of " + texts.map { "\"\($0)\"" }.joined(separator: ", ")
        }
        guard let value = JSONValue(at: context.codingPath, in: body) else {
            return "\(subject(context)) must be \(accepted)"
        }
        return "\(subject(context)) is \(value.description); it must be \(accepted)"
    }

    private static func subject(_ context: DecodingError.Context) -> String {
        context.codingPath.isEmpty ? "the body" : "`\(path(context.codingPath))`"
    }

    /// Returns a path such as `filter.state[0]`. Undoes the decoder's conversion from `ttl_seconds` to `ttlSeconds`.
    private static func path(_ keys: [any CodingKey]) -> String {
        keys.reduce(into: "") { path, key in
            if let index = key.intValue {
                path += "[\(index)]"
            } else {
                path += (path.isEmpty ? "" : ".") + key.stringValue.snakeCase
            }
        }
    }

    private static func name(of type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is any BinaryInteger.Type: "an integer"
        case is any BinaryFloatingPoint.Type: "a number"
        case is any JSONList.Type: "an array"
        default: "an object"
        }
    }
}

/// A value of a body, for messages.
private struct JSONValue: CustomStringConvertible {
    let description: String

    /// - Returns: `nil` if the value cannot be found.
    init?(at path: [any CodingKey], in body: Data) {
        guard body.count <= UnfitNumbers.longestBody,
            var value = try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
        else { return nil }
        for key in path {
            if let index = key.intValue, let list = value as? [Any], list.indices.contains(index) {
                value = list[index]
            } else if let object = value as? [String: Any],
                // The decoder has converted the name `ttl_seconds` to `ttlSeconds`.
                let member = object[key.stringValue.snakeCase] ?? object[key.stringValue]
            {
                value = member
            } else {
                return nil
            }
        }
        switch value {
        case is [String: Any]: description = "an object"
        case is [Any]: description = "an array"
        case is NSNull: description = "`null`"
        // A text where a number belongs may be a secret.
        case is String: description = "a string"
        default:
            guard let data = try? JSONSerialization.data(withJSONObject: value, options: .fragmentsAllowed)
            else { return nil }
            description = "`\(String(decoding: data, as: UTF8.self))`"
        }
    }
}

/// A Swift type that is an array in JSON.
private protocol JSONList {}

extension Array: JSONList {}

/// The members of a body whose numbers are not integers, or do not fit into `Int64`.
///
/// For such a number in an integer member, the decoder reports invalid data without its position. The list may also
/// contain members in which a fraction is valid.
private struct UnfitNumbers: CustomStringConvertible {
    /// The longest body that is searched, in bytes. Searching takes many times the body's length in memory.
    static let longestBody = 1 << 16

    private var names: [String] = []

    /// - Returns: `nil` if the body has no such numbers or is not JSON.
    init?(in body: Data) {
        guard body.count <= Self.longestBody,
            let json = try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed)
        else { return nil }
        collect(json, at: "")
        if names.isEmpty { return nil }
    }

    var description: String {
        let some = names.sorted().prefix(Self.mostNames).map { "`\($0)`" }.joined(separator: ", ")
        let others = names.count > Self.mostNames ? " and \(names.count - Self.mostNames) more" : ""
        let which = names.count > 1 ? "one of " : ""
        return "a number is out of range or not an integer: \(which)\(some)\(others)"
    }

    private static let mostNames = 4

    private mutating func collect(_ value: Any, at path: String) {
        switch value {
        case let object as [String: Any]:
            for (name, value) in object { collect(value, at: path.isEmpty ? name : "\(path).\(name)") }
        case let list as [Any]:
            for (index, value) in list.enumerated() { collect(value, at: "\(path)[\(index)]") }
        case let number as NSNumber where Int64(exactly: number.doubleValue) == nil:
            names.append(String(path.prefix(80)))
        default: break
        }
    }
}
