internal import Foundation
internal import NIOHTTP1

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
        let data = Data(body)
        do {
            return try ControlMessage.decoder.decode(type, from: data)
        } catch {
            throw .malformedBody("the body is not the JSON expected: \(DecodingFailure(error, in: data))")
        }
    }

    /// The body as a message, none for an empty one.
    func optionalMessage<Message: Decodable>(_ type: Message.Type) throws(Problem) -> Message? {
        body.isEmpty ? nil : try message(type)
    }

    /// Refuses names in the query that mean nothing, and names that come twice where one value counts, since who wrote
    /// them thinks that they do.
    ///
    /// - Parameters:
    ///   - accepted: The names that it may have.
    ///   - lists: Those of them that may come more than once.
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
                    detail: "`\(item.name)` comes twice, and takes one value"
                )
            }
        }
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
