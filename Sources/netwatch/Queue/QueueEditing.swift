internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import NetwatchService
internal import OfflineQueue

/// Something that is asked of many requests: which ones, and what became of each.
struct QueueEditing: ParsableArguments {
    @Argument(help: "Ids, or their beginnings; - reads them from standard input, one a line.")
    var ids: [String] = []

    @Flag(help: "All that it applies to, of those that --state, --host and --lane leave.")
    var all = false

    @Flag(help: "With --all: do not ask.")
    var yes = false

    @OptionGroup var states: StateFilter
    @OptionGroup var filter: LaneFilter

    @Option(name: .shortAndLong, help: "How to print: text, or json for one object per line.")
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    /// Ids of 255 bytes, as many as the queue may hold of them, are a list that nobody has; this is a million
    /// made ones.
    private static let longestInput = 64 << 20

    func validate() throws {
        if all != ids.isEmpty {
            throw ValidationError(all ? "`--all` excludes ids" : "no ids are given, and not `--all`")
        }
        if yes, !all { throw ValidationError("`--yes` goes with `--all`") }
        let isFiltered = !states.wanted.isEmpty || filter.host != nil || filter.lane != nil
        if !all, isFiltered { throw ValidationError("`--state`, `--host` and `--lane` go with `--all`") }
        if ids.count > 1, ids.contains("-") { throw ValidationError("`-` excludes ids") }
        // Nobody to ask is known before anything is done.
        if all, !yes, !Self.hasSomebodyToAsk {
            throw ValidationError("`--all` needs `--yes`, without a terminal")
        }
    }

    /// Does it.
    ///
    /// - Parameters:
    ///   - action: As in the route `/v1/queue/…`.
    ///   - usualStates: Which states `--all` means.
    /// - Throws: The exit status 1 when anything was not done.
    func perform(_ action: String, usualStates: [QueuedRequest.State], newKey: Bool = false) async throws {
        let given = ids == ["-"] ? try Self.idsOfInput() : ids
        let isDone = try await queue.withQueue { client in
            let ids = all ? try await matching(usualStates, client) : given
            guard !all || yes || Self.confirms(action, ids.count) else { return false }
            return try await perform(action, ids, newKey, client)
        }
        if !isDone { throw ExitStatus.no.exitCode }
    }

    private func perform(
        _ action: String,
        _ ids: [String],
        _ newKey: Bool,
        _ client: ServiceClient
    ) async throws(CommandError) -> Bool {
        var (isDone, rest) = (true, ids[...])
        while !rest.isEmpty {
            let batch = ControlMessage.Edit(ids: Array(rest.prefix(ControlMessage.mostIDs)), newKey: newKey)
            rest = rest.dropFirst(ControlMessage.mostIDs)
            let edited = try await client.post("/v1/queue/\(action)", batch, as: ControlMessage.Edited.self)
            for result in edited.results { show(result) }
            isDone = isDone && edited.results.allSatisfy(\.done)
        }
        return isDone
    }

    private func matching(_ usual: [QueuedRequest.State], _ client: ServiceClient) async throws -> [String] {
        let wanted = states.wanted.isEmpty ? usual : states.wanted
        var ids: [String] = []
        try await filter.forEachPage(of: client, states: wanted, limit: .max) { page in
            ids += page.requests.map(\.id)
        }
        return ids
    }

    private func show(_ result: ControlMessage.Edited.Result) {
        if format == .json { return Printer.json(result, with: ControlMessage.encoder) }
        if result.done { return Printer.line("\(result.id)  \(result.state ?? "")") }
        Printer.error(Printer.printable(result.detail ?? "\(result.id): \(result.code ?? "")"))
    }

    // MARK: What is given, and who is asked

    private static func idsOfInput() throws(CommandError) -> [String] {
        let data = try InputFile.read("-", limit: longestInput)
        return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).map {
            $0.trimmingCharacters(in: .whitespaces)
        }.filter { !$0.isEmpty }
    }

    private static var hasSomebodyToAsk: Bool {
        isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1
    }

    private static func confirms(_ action: String, _ count: Int) -> Bool {
        Printer.note("\(action) \(count) \(count == 1 ? "request" : "requests")? [y/N]")
        return ["y", "yes"].contains(readLine()?.lowercased())
    }
}
