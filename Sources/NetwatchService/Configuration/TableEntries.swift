/// The keys of one table in an array of tables, such as `[[host]]`, and the faults that were found in them.
struct TableEntries {
    /// A fault of one key, or of the table as a whole.
    struct Fault: Error, Hashable {
        var key: String?
        let message: String
    }

    /// The keys whose values are URLs.
    private static let urls: Set = ["url", "webhook"]

    private let values: [String: TOMLNode.Value]
    private(set) var faults: [Fault] = []

    /// - Parameter accepted: The accepted keys. Each other key is a fault.
    init(_ entries: [(key: String, node: TOMLNode)], accepted: [String]) {
        values = Dictionary(entries.map { ($0.key, $0.node.value) }) { first, _ in first }
        for key in values.keys.sorted() where !accepted.contains(key) {
            report(UnknownName.message(key, accepted: accepted), at: key)
        }
    }

    subscript(key: String) -> TOMLNode.Value? { values[key] }

    // MARK: Values

    // These methods return `nil` if the key is missing, and also if its value is a fault, which they report.

    mutating func text(
        _ key: String,
        accepted: String = "a string",
        where isValid: (String) -> Bool = { _ in true }
    ) -> String? {
        guard let value = values[key] else { return nil }
        if case .string(let text) = value, isValid(text) { return text }
        refuse(key, value, accepted: accepted)
        return nil
    }

    mutating func texts(
        _ key: String,
        accepted: String,
        where isValid: ([String]) -> Bool
    ) -> [String]? {
        guard let value = values[key] else { return nil }
        if let texts = value.texts, isValid(texts) { return texts }
        refuse(key, value, accepted: accepted)
        return nil
    }

    /// Reads one of the raw values of a type.
    mutating func choice<Choice: RawRepresentable & CaseIterable>(
        _ key: String
    ) -> Choice? where Choice.RawValue == String {
        let names = Choice.allCases.map { TOMLNode.Value.quoted($0.rawValue) }.joined(separator: " or ")
        return text(key, accepted: names) { Choice(rawValue: $0) != nil }.flatMap(Choice.init)
    }

    /// Reads an array of at least one of the raw values of a type.
    mutating func choices<Choice: RawRepresentable & CaseIterable & Hashable>(
        _ key: String
    ) -> Set<Choice>? where Choice.RawValue == String {
        let names = Choice.allCases.map { TOMLNode.Value.quoted($0.rawValue) }.joined(separator: " and ")
        let values = texts(key, accepted: "an array of at least one of \(names)") { texts in
            !texts.isEmpty && texts.allSatisfy { Choice(rawValue: $0) != nil }
        }
        return values.map { texts in Set(texts.compactMap { Choice(rawValue: $0) }) }
    }

    mutating func duration(_ key: String, _ range: ClosedRange<Duration>) -> Duration? {
        guard let value = values[key] else { return nil }
        let duration = Setting.duration(value, in: range)
        if duration == nil { refuse(key, value, accepted: Setting.durationForms(range)) }
        return duration
    }

    mutating func integer(_ key: String, _ range: ClosedRange<Int>) -> Int? {
        guard let value = values[key] else { return nil }
        if case .integer(let number) = value, let number = Int(exactly: number), range.contains(number) {
            return number
        }
        refuse(key, value, accepted: "an integer from \(range.lowerBound) to \(range.upperBound)")
        return nil
    }

    /// Returns which of the keys the table has. It is a fault if the table has none or several of them.
    ///
    /// - Parameter subject: What the table describes: `host`.
    mutating func only(of keys: [String], in subject: String) -> String? {
        let given = keys.filter { values[$0] != nil }
        if given.count == 1 { return given[0] }
        let names = keys.map { "`\($0)`" }
        let list = names.dropLast().joined(separator: ", ") + " and " + names[names.count - 1]
        let fault = given.isEmpty ? "has none of" : "has more than one of"
        report("the \(subject) \(fault) \(list); it must have exactly one")
        return nil
    }

    /// Reports each of the keys that the table has without another key.
    mutating func require(_ other: String, with keys: [String]) {
        for key in keys where values[key] != nil && values[other] == nil {
            report("`\(key)` requires `\(other)`", at: key)
        }
    }

    // MARK: Faults

    mutating func refuse(_ key: String, _ value: TOMLNode.Value, accepted: String) {
        let shown = value.refusedText(isURL: Self.urls.contains(key))
        report("`\(key)` is \(shown); it must be \(accepted)", at: key)
    }

    /// - Parameter key: Default: `nil`, the table as a whole.
    mutating func report(_ message: String, at key: String? = nil) {
        faults.append(Fault(key: key, message: message))
    }
}
