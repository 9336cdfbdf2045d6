/// Messages about keys that do not exist.
enum UnknownName {
    /// Returns a message that suggests the most similar accepted name, or else lists all of them.
    static func message(_ name: String, accepted: [String]) -> String {
        if let similar = NameSuggestion.name(for: name, among: accepted) {
            return "`\(name)` is not a key; did you mean `\(similar)`?"
        }
        return "`\(name)` is not a key; accepted: \(accepted.map { "`\($0)`" }.joined(separator: ", "))"
    }
}
