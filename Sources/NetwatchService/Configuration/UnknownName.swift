/// Messages about names that do not exist.
enum UnknownName {
    /// Returns a message that suggests the most similar accepted name, or else lists all of them.
    static func message(_ name: String, accepted: [String]) -> String {
        let similar = accepted.min { distance(name, $0) < distance(name, $1) }
        if let similar, distance(name, similar) <= max(1, similar.count / 3) {
            return "`\(name)` is not a key; did you mean `\(similar)`?"
        }
        return "`\(name)` is not a key; accepted: \(accepted.map { "`\($0)`" }.joined(separator: ", "))"
    }

    /// The number of insertions, deletions and replacements that turn one text into the other (Levenshtein distance).
    static func distance(_ left: String, _ right: String) -> Int {
        // A name in a file can be long, and the time grows with the product of both lengths.
        let left = Array(left.prefix(64)), right = Array(right.prefix(64))
        var row = Array(0...right.count)
        for (i, character) in left.enumerated() {
            var diagonal = row[0]
            row[0] = i + 1
            for (j, other) in right.enumerated() {
                let replaced = diagonal + (character == other ? 0 : 1)
                diagonal = row[j + 1]
                row[j + 1] = min(replaced, diagonal + 1, row[j] + 1)
            }
        }
        return row[right.count]
    }
}
