internal import Foundation
internal import NIOHTTP1

/// A message with members that accept only certain texts.
protocol ChoiceMessage {
    /// The accepted texts, by the paths of the members in JSON, such as `filter.state`.
    static var choices: [String: [String]] { get }
}

/// Typed access to a request's body and query. Errors state what is wrong with the value.
extension ControlRequest {
    /// Decodes the body as a message. Rejects members for which the message has no property.
    func message<Message: Decodable>(_ type: Message.Type) throws(Problem) -> Message {
        let message = try decoded(type)
        // The decoder also accepts `ttlSeconds` for `ttl_seconds`, so the names are checked separately.
        try MemberNames(of: body).check(against: message)
        return message
    }

    private func decoded<Message: Decodable>(_ type: Message.Type) throws(Problem) -> Message {
        let data = Data(body)
        do {
            return try ControlMessage.decoder.decode(type, from: data)
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
