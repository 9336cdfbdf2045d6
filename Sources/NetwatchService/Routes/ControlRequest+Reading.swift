internal import Foundation

/// What a route reads of a request, with an error that says what is wrong with it.
extension ControlRequest {
    /// The body as a message, which has a property for each of its members.
    func message<Message: Decodable>(_ type: Message.Type) throws(Problem) -> Message {
        let message = try decoded(type)
        // The message's decoder takes `ttlSeconds` for `ttl_seconds`.
        try MemberNames(of: body).check(against: message)
        return message
    }

    private func decoded<Message: Decodable>(_ type: Message.Type) throws(Problem) -> Message {
        do {
            return try ControlMessage.decoder.decode(type, from: Data(body))
        } catch {
            throw .malformedBody("the body is not the JSON expected: \(Self.describe(error))")
        }
    }

    /// The body as a message, none for an empty one.
    func optionalMessage<Message: Decodable>(_ type: Message.Type) throws(Problem) -> Message? {
        body.isEmpty ? nil : try message(type)
    }

    private static func describe(_ error: any Error) -> String {
        switch error {
        case DecodingError.keyNotFound(let key, _): "`\(key.stringValue)` is missing"
        case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            "`\(path(context))` has the wrong type"
        case DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty:
            "`\(path(context))`: \(context.debugDescription)"
        case DecodingError.dataCorrupted: "it is not valid JSON"
        default: "\(error)"
        }
    }

    private static func path(_ context: DecodingError.Context) -> String {
        context.codingPath.map(\.stringValue).joined(separator: ".")
    }

    /// Refuses names in the query that mean nothing, since who wrote them thinks that they do.
    func checkQuery(takes accepted: [String]) throws(Problem) {
        guard let unknown = query.first(where: { !accepted.contains($0.name) }) else { return }
        throw .unknownName(unknown.name, code: "unknown_parameter", accepted: accepted)
    }

    /// The first value of a name in the query; empty when it has none.
    func value(of name: String) -> String? {
        query.first { $0.name == name }.map { $0.value ?? "" }
    }

    /// All values of a name in the query.
    func values(of name: String) -> [String] {
        query.filter { $0.name == name }.map { $0.value ?? "" }
    }

    /// A whole number of the query.
    func number<Number: FixedWidthInteger>(_ name: String, in range: ClosedRange<Number>) throws(Problem)
        -> Number?
    {
        guard let text = value(of: name) else { return nil }
        guard let number = Number(text), range.contains(number) else {
            throw .malformedQuery(name, text, accepted: "\(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    /// A number of seconds of the query, with a fraction if need be.
    func seconds(_ name: String, atMost longest: Duration) throws(Problem) -> Duration? {
        guard let text = value(of: name) else { return nil }
        let longest = longest.components.seconds
        guard let seconds = Double(text), (0...Double(longest)).contains(seconds) else {
            throw .malformedQuery(name, text, accepted: "0 to \(longest) seconds")
        }
        return .seconds(seconds)
    }

    /// `true` or `false` of the query.
    func flag(_ name: String) throws(Problem) -> Bool? {
        guard let text = value(of: name) else { return nil }
        guard let flag = Bool(text) else { throw .malformedQuery(name, text, accepted: "true or false") }
        return flag
    }
}
