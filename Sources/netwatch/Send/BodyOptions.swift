internal import ArgumentParser

/// The options that set the body of a request.
struct BodyOptions: ParsableArguments {
    @Option(
        name: .shortAndLong,
        help: "The body. @FILE reads a file, @- reads standard input. At most 512 MiB."
    )
    var data: [String] = []

    @Option(
        help:
            "Like -d, with `Content-Type` and `Accept` for JSON unless -H sets them. The body is not checked."
    )
    var json: [String] = []

    @Option(
        name: [.customShort("T"), .customLong("upload-file")],
        help:
            "A file to send as the body; - for standard input. Read by this command with its user's permissions."
    )
    var uploadFile: [String] = []

    func validate() throws {
        let names = data.map { _ in "`-d`" } + json.map { _ in "`--json`" } + uploadFile.map { _ in "`-T`" }
        guard names.count > 1 else { return }
        throw ValidationError(
            "\(names.joined(separator: " and ")) cannot be combined: a request has one body"
        )
    }

    var input: BodyInput? {
        if let file = uploadFile.first { return file == "-" ? .standardInput : .file(file) }
        return (data.first ?? json.first).map(BodyInput.init(data:))
    }

    /// The default method, as in curl(1).
    var defaultMethod: String {
        if !uploadFile.isEmpty { return "PUT" }
        return input == nil ? "GET" : "POST"
    }

    /// Adds the header lines that the kind of body implies, unless they are given.
    func completing(_ headers: [[String]]) -> [[String]] {
        guard !json.isEmpty else { return headers }
        let names = Set(headers.map { $0[0].lowercased() })
        let usual = [["Content-Type", "application/json"], ["Accept", "application/json"]]
        return headers + usual.filter { !names.contains($0[0].lowercased()) }
    }
}
