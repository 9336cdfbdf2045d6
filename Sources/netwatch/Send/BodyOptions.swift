internal import ArgumentParser

/// The options that set the body of a request.
struct BodyOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: "The body: text, @FILE for a file, or @- for standard input. At most 512 MiB."
    )
    var data: [ArgumentBytes] = []

    @Option(
        help:
            "Like -d. Sets Content-Type and Accept to application/json, unless -H sets them. Does not check the body."
    )
    var json: [ArgumentBytes] = []

    @Option(
        name: [.customShort("T"), .customLong("upload-file")],
        help:
            "A file to send as the body; - for standard input. The command reads it, not the service."
    )
    var uploadFile: [ArgumentBytes] = []

    func validate() throws {
        let names = data.map { _ in "`-d`" } + json.map { _ in "`--json`" } + uploadFile.map { _ in "`-T`" }
        guard names.count > 1 else { return }
        throw ValidationError(
            "\(names.joined(separator: " and ")) cannot be combined: a request has one body"
        )
    }

    var input: BodyInput? {
        uploadFile.first.map(BodyInput.init(file:)) ?? (data.first ?? json.first).map(BodyInput.init(data:))
    }

    /// The method if none is given, as in curl(1).
    var defaultMethod: String {
        if !uploadFile.isEmpty { return "PUT" }
        return input == nil ? "GET" : "POST"
    }

    /// Adds the header fields that `--json` implies, unless they are given.
    func completing(_ headers: [[String]]) -> [[String]] {
        guard !json.isEmpty else { return headers }
        let names = Set(headers.map { $0[0].lowercased() })
        let usual = [["Content-Type", "application/json"], ["Accept", "application/json"]]
        return headers + usual.filter { !names.contains($0[0].lowercased()) }
    }
}
