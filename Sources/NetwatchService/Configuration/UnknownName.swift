/// Messages about keys that do not exist.
enum UnknownName {
    /// Returns a message that suggests the most similar accepted name, or else lists all of them.
    static func message(_ name: String, accepted: [String]) -> String {
        let shown = RefusedText.withoutSecrets(name)
        if let similar = NameSuggestion.name(for: name, among: accepted) {
            return "`\(shown)` is not a key; did you mean `\(similar)`?"
        }
        return "`\(shown)` is not a key; accepted: \(accepted.map { "`\($0)`" }.joined(separator: ", "))"
    }
}
