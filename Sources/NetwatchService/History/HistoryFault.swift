internal import GRDB

/// The reason why the file of the history cannot be used.
package struct HistoryFault: Error, CustomStringConvertible {
    package let description: String

    init(_ path: String, _ error: any Error) {
        let fault = error as? DatabaseError
        let isDamage = [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(fault?.resultCode)
        let advice = isDamage ? "; to start a new history, stop the service and remove the file" : ""
        description = "`\(path)` cannot be used: \(fault?.message ?? "\(error)")\(advice)"
    }
}
