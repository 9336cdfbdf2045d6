internal import GRDB

/// The reason why the file of the history cannot be opened, read or written. The description begins with its path.
package struct HistoryFault: Error, CustomStringConvertible {
    package let description: String

    /// - Parameter isOpening: Whether the error occurred while the file was opened. Without this file, the history cannot
    ///   be used; a failed read or write can be repeated.
    init(_ path: String, _ error: any Error, isOpening: Bool = false) {
        let fault = error as? DatabaseError
        let isDamage = [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(fault?.resultCode)
        let advice = isDamage ? "; to start a new history, stop the service and remove the file" : ""
        let subject = isOpening ? "`\(path)` cannot be used" : "`\(path)`"
        description = "\(subject): \(fault?.message ?? "\(error)")\(advice)"
    }
}
