/// Suggestions for names that do not exist.
package enum NameSuggestion {
    /// The minimum length of a word that suggests the names that begin with it.
    private static let shortestPrefix = 3

    /// Returns the shortest name that begins with the word, or else the most similar name; `nil` if none is similar.
    package static func name(for word: String, among names: [String]) -> String? {
        let longer = names.filter { word.count >= shortestPrefix && $0.hasPrefix(word) }
        if let name = longer.min(by: { $0.count < $1.count }) { return name }
        let nearest = names.min { distance(word, $0) < distance(word, $1) }
        return nearest.flatMap { isSimilar(word, to: $0) ? $0 : nil }
    }

    /// Returns whether the word may be a misspelling of the name: one edit for three letters of the name, but at least
    /// one.
    package static func isSimilar(_ word: String, to name: String) -> Bool {
        distance(word, name) <= max(1, name.count / 3)
    }

    /// Returns the Damerau–Levenshtein distance (optimal string alignment): the number of single-letter edits and swaps
    /// of adjacent letters.
    static func distance(_ left: String, _ right: String) -> Int {
        // A name in a file can be long, and the time grows with the product of both lengths.
        let left = Array(left.prefix(64)), right = Array(right.prefix(64))
        var rows = [Array(0...right.count)]
        for (i, letter) in left.enumerated() {
            var row = [i + 1]
            for (j, other) in right.enumerated() {
                var edits = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (letter == other ? 0 : 1))
                if i > 0, j > 0, letter == right[j - 1], left[i - 1] == other {
                    edits = min(edits, rows[i - 1][j - 1] + 1)
                }
                row.append(edits)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
