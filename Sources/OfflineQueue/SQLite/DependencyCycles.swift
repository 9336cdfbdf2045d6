internal import GRDB

/// Finds requests that wait for each other, so that none of them would be sent.
extension Database {
    /// Returns why a request must not depend on others: the first of them also waits for the request itself, directly,
    /// through other requests or because of its position in a FIFO lane. `nil` if none does.
    ///
    /// - Parameters:
    ///   - sequence: The request, which must already have these dependencies.
    ///   - others: The sequence numbers of its dependencies.
    func cycle(of sequence: Int64, dependingOn others: [Int64]) throws -> String? {
        for other in others where try isNeeded(sequence, by: other) {
            let id: String? = try row(StoreStatements.findRequest, [other])?["id"]
            return "depends on \(quoted(id ?? "number \(other)")), which also waits for this request"
        }
        return nil
    }

    /// Returns whether a request waits for another one.
    private func isNeeded(_ sequence: Int64, by other: Int64) throws -> Bool {
        try row(StoreStatements.isNeeded, ["seq": other, "other": sequence]) != nil
    }
}
