internal import NetwatchService

/// Finds requests by the beginning of their ids. The control API itself only accepts complete ids.
struct IDResolver {
    /// The minimum length of the beginning of an id. A shorter text only matches a complete id, because many ids could
    /// begin with it.
    static let shortestPrefix = 8
    /// The number of ids that a message lists: as many as a person can compare.
    private static let mostListed = 4

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
    /// - Throws: An error with exit status 1:
    ///   - if the text is not an id, and is shorter than ``shortestPrefix``
    ///   - if no id begins with the text
    ///   - if several ids begin with it; the message lists up to four
    func id(meantBy text: String) async throws(CommandError) -> String {
        guard !text.isEmpty else { throw CommandError(.no, "the id must not be empty") }
        let found = try await client.get("/v1/ids?prefix=\(text.urlEscaped)", as: ControlMessage.IDs.self).ids
        // Ids are sorted, so an id equal to the text comes first.
        if found.first == text { return text }
        let name = Printer.quoted(text)
        guard text.utf8.count >= Self.shortestPrefix else {
            throw CommandError(
                .no,
                "no request has the id \(name); the beginning of an id must have at least "
                    + "\(Self.shortestPrefix) characters"
            )
        }
        guard let id = found.first else {
            throw CommandError(.no, "no request has an id that begins with \(name)")
        }
        guard found.count == 1 else {
            let some = found.prefix(Self.mostListed).map(Printer.quoted).joined(separator: ", ")
            let rest = found.count > Self.mostListed ? ", and more" : ""
            throw CommandError(.no, "several ids begin with \(name): \(some)\(rest)")
        }
        return id
    }
}
