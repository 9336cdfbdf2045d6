internal import NetwatchService

/// Finds the requests that people name by the beginning of an id. The control API itself takes whole ids only.
struct IDResolver {
    /// Shorter texts are taken as whole ids only: the next request may have the same beginning.
    static let shortestPrefix = 8

    let client: ServiceClient

    /// Returns the whole ids, in the same order.
    ///
    /// - Throws: As ``id(meantBy:)``, for the first that means no request.
    func ids(meantBy texts: [String]) async throws(CommandError) -> [String] {
        var ids: [String] = []
        for text in texts { ids.append(try await id(meantBy: text)) }
        return ids
    }

    /// Returns the id that is the text, or the only one that begins with it.
    ///
    /// - Throws: With status 1 when there is none, when there are several, which are named, and when the text is
    ///   shorter than ``shortestPrefix`` and no id.
    func id(meantBy text: String) async throws(CommandError) -> String {
        guard !text.isEmpty else { throw CommandError(.no, "the id must not be empty") }
        let found = try await client.get("/v1/ids?prefix=\(text.urlEscaped)", as: ControlMessage.IDs.self).ids
        // Ids are sorted, so one that is the text itself comes first.
        if found.first == text { return text }
        let name = Printer.quoted(text)
        guard text.utf8.count >= Self.shortestPrefix else {
            throw CommandError(
                .no,
                "no request has the id \(name)",
                hint: "an id can be shortened to its first \(Self.shortestPrefix) characters or more"
            )
        }
        guard let id = found.first else {
            throw CommandError(.no, "no request has an id that begins with \(name)")
        }
        guard found.count == 1 else {
            let some = found.map(Printer.quoted).joined(separator: ", ")
            throw CommandError(.no, "several ids begin with \(name): \(some)")
        }
        return id
    }
}
