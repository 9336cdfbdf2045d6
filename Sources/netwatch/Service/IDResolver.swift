internal import NetwatchService

/// Finds requests by the beginning of their ids. The control API itself only accepts complete ids.
struct IDResolver {
    /// Shorter texts only match complete ids, because the next request could have the same beginning.
    static let shortestPrefix = 8

    let client: ServiceClient

    /// Returns the complete ids, in the order of the texts.
    ///
    /// - Throws: The error of ``id(meantBy:)`` for the first text that selects no single request.
    func ids(meantBy texts: [String]) async throws(CommandError) -> [String] {
        var ids: [String] = []
        for text in texts { ids.append(try await id(meantBy: text)) }
        return ids
    }

    /// Returns the id that equals the text, or the only id that begins with it.
    ///
    /// - Throws: An error with status 1 if no id matches or several match; the message lists them. Also if the text is
    ///   shorter than ``shortestPrefix`` and not an id.
    func id(meantBy text: String) async throws(CommandError) -> String {
        guard !text.isEmpty else { throw CommandError(.no, "the id must not be empty") }
        let found = try await client.get("/v1/ids?prefix=\(text.urlEscaped)", as: ControlMessage.IDs.self).ids
        // Ids are sorted, so an id equal to the text comes first.
        if found.first == text { return text }
        let name = Printer.quoted(text)
        guard text.utf8.count >= Self.shortestPrefix else {
            throw CommandError(
                .no,
                "no request has the id \(name)",
                hint: "the beginning of an id must have at least \(Self.shortestPrefix) characters"
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
