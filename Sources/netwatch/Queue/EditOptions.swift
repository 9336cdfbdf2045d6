internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue

/// The options of the commands that edit requests, which are selected by ids or by a filter.
struct EditOptions: ParsableArguments {
    @Argument(
        help: "Ids, or at least their first 8 characters; - reads them from standard input, one per line."
    )
    var ids: [String] = []

    @Flag(
        help:
            """
            Edit all requests to which the command applies, or those that --state, --host, --lane, --submitter and \
            --tag select.
            """
    )
    var all = false

    @Flag(help: "With --all: do not ask for confirmation.")
    var yes = false

    @OptionGroup var states: StateFilter
    @OptionGroup var filter: LaneFilter
    @OptionGroup var tags: TagFilter

    @Option(
        name: .shortAndLong,
        help: "The output format: text, or json for one object per id (with --all, for a single object)."
    )
    var format = OutputFormat.text

    @OptionGroup var queue: QueueOptions

    /// The maximum bytes of the ids on standard input: enough for more than a million generated ids. A full queue whose
    /// ids all have 255 bytes would exceed it, but such a queue is unrealistic.
    private static let longestInput = 64 << 20

    func validate() throws {
        if all != ids.isEmpty {
            throw ValidationError(all ? "`--all` cannot be combined with ids" : "give ids or `--all`")
        }
        if yes, !all { throw ValidationError("`--yes` requires `--all`") }
        if !all, filter.description(states: states.wanted, tag: tags.tag) != nil {
            throw ValidationError("`--state`, `--host`, `--lane`, `--submitter` and `--tag` require `--all`")
        }
        if ids.count > 1, ids.contains("-") { throw ValidationError("`-` cannot be combined with ids") }
        if ids.contains("") { throw ValidationError("the id must not be empty") }
        // Checked here, before any action, because without a terminal the user cannot confirm.
        if all, !yes, !Self.canConfirm {
            throw ValidationError("`--all` requires `--yes` if there is no terminal")
        }
    }

    /// Edits the selected requests.
    ///
    /// - Throws: An error, or an exit status if one of the requests was not edited: 77 if the requests that were not
    ///   edited belong to other users, otherwise 1.
    func perform(_ action: ControlMessage.EditAction, newKey: Bool) async throws {
        let given = ids == ["-"] ? try Self.readIDs() : ids
        let status = try await queue.withQueue { client in
            let run = EditRun(options: self, action: action, newKey: newKey, client: client)
            return all ? try await run.editAll() ? .yes : .no : try await run.edit(given)
        }
        if status != ExitStatus.yes { throw status.exitCode }
    }

    private static func readIDs() throws(CommandError) -> [String] {
        let data = try InputFile.read(.standardInput, limit: longestInput).withoutByteOrderMark
        return String(decoding: data, as: UTF8.self).split(whereSeparator: \.isNewline).map {
            $0.trimmingCharacters(in: .whitespaces)
        }.filter { !$0.isEmpty }
    }

    private static var canConfirm: Bool {
        isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1
    }
}

/// One run of a command that edits requests.
struct EditRun {
    let options: EditOptions
    let action: ControlMessage.EditAction
    var newKey = false
    let client: ServiceClient

    // MARK: Edits by filter

    /// Returns whether all matching requests were edited.
    func editAll() async throws(CommandError) -> Bool {
        let names = options.states.wanted.map(\.rawValue)
        let matching = ControlMessage.Filter(
            state: names.isEmpty ? nil : names,
            host: options.filter.host,
            lane: options.filter.lane,
            tag: options.tags.tag,
            submitter: options.filter.submitter
        )
        if !options.yes {
            let counted = try await post(.init(filter: matching, dryRun: true))
            // No confirmation is requested, because there is nothing to edit. A request that arrives now was not
            // counted, so the user has not agreed to edit it.
            if counted.isNone { return report(counted) }
            guard isConfirmed(counted.done) else {
                Printer.note("no request was changed")
                return false
            }
        }
        return report(try await post(.init(filter: matching, newKey: newKey)))
    }

    private func isConfirmed(_ count: Int) -> Bool {
        Printer.note("\(action) \(CountText.format(count, "request"))? [y/N]")
        return ["y", "yes"].contains(readLine()?.lowercased())
    }

    /// Prints the result. Returns whether all matching requests were edited.
    private func report(_ edited: ControlMessage.EditedAll) -> Bool {
        if options.format == .json { Printer.json(edited, with: ControlMessage.encoder) }
        if options.format == .text { Printer.note(summary(edited)) }
        guard edited.refused > 0 else { return true }
        Printer.error(Self.refusal(action, edited))
        return false
    }

    static func refusal(_ action: ControlMessage.EditAction, _ edited: ControlMessage.EditedAll) -> String {
        let matched = CountText.format(edited.refused, "request")
        let cause = edited.detail.map { ", or there is no room (\($0))" } ?? ""
        return "\(matched) matched, but \(action) does not apply to their state\(cause)"
    }

    private func summary(_ edited: ControlMessage.EditedAll) -> String {
        guard edited.isNone else { return "\(action.pastTense) \(CountText.format(edited.done, "request"))" }
        let selected = options.filter.description(states: options.states.wanted, tag: options.tags.tag)
        let what = selected.map { " \($0)" } ?? ""
        return "no request matches\(what): nothing was \(action.pastTense)"
    }

    /// How long an edit by filter may take. The service sends nothing during the edit, and a queue may have a million
    /// requests.
    private static let longest: Duration = .seconds(3600)

    private func post(_ edit: ControlMessage.Edit) async throws(CommandError) -> ControlMessage.EditedAll {
        try await client.post(
            "/v1/queue/\(action)",
            edit,
            isRepeatable: edit.dryRun == true,
            within: Self.longest,
            as: ControlMessage.EditedAll.self
        )
    }

    // MARK: Edits by id

    /// Edits the requests with these ids.
    func edit(_ ids: [String]) async throws(CommandError) -> ExitStatus {
        var (refusals, rest) = (Set<String?>(), ids[...])
        while !rest.isEmpty {
            let batch = Array(Self.firstBatch(of: rest))
            rest = rest.dropFirst(batch.count)
            let results = try await results(batch)
            for result in results { show(result) }
            refusals.formUnion(results.filter { !$0.done }.map(\.code))
        }
        if refusals.isEmpty { return .yes }
        return refusals == [QueueError.Code.notSubmitter.rawValue] ? .noPermission : .no
    }

    /// Returns the ids at the beginning that fit into one message, at least one.
    private static func firstBatch(of ids: ArraySlice<String>) -> ArraySlice<String> {
        var bytes = 0
        return ids.prefix(ControlMessage.mostIDs).prefix { id in
            defer { bytes += jsonBytes(id) }
            return bytes == 0 || bytes + jsonBytes(id) <= mostBytes
        }
    }

    /// The maximum bytes of the ids in one message, below the limit of the service for the whole message.
    private static let mostBytes = 1 << 20

    /// Returns the maximum length of an id as a JSON string with its comma (RFC 8259 §7).
    private static func jsonBytes(_ id: String) -> Int {
        id.utf8.reduce(3) { count, byte in
            switch byte {
            case ..<0x20: count + 6
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): count + 2
            default: count + 1
            }
        }
    }

    /// Edits the requests with these ids. If an id is unknown, it is tried again as the beginning of an id.
    private func results(_ ids: [String]) async throws(CommandError) -> [ControlMessage.Edited.Result] {
        var results = try await post(ids)
        var resolved: [(index: Int, id: String)] = []
        for (index, result) in results.enumerated() where result.code == "unknown_request" {
            do throws(CommandError) {
                resolved.append((index, try await IDResolver(client: client).id(meantBy: ids[index])))
            } catch {
                guard error.status == .no else { throw error }
                results[index].detail = error.message
            }
        }
        guard !resolved.isEmpty else { return results }
        let retried = try await post(resolved.map(\.id))
        for ((index, _), result) in zip(resolved, retried) { results[index] = result }
        return results
    }

    private func post(_ ids: [String]) async throws(CommandError) -> [ControlMessage.Edited.Result] {
        let edit = ControlMessage.Edit(ids: ids, newKey: newKey)
        return try await client.post("/v1/queue/\(action)", edit, as: ControlMessage.Edited.self).results
    }

    private func show(_ result: ControlMessage.Edited.Result) {
        if options.format == .json { return Printer.json(result, with: ControlMessage.encoder) }
        if result.done {
            Printer.line("\(result.id)  \(action.words(for: result.state ?? ""))")
            if result.isSentAgain {
                let repetition = " is sent again; the server may have received it before"
                Printer.note(Printer.printable(result.id) + repetition)
            }
            return
        }
        Printer.error(Printer.printable(result.detail ?? "\(result.id): \(result.code ?? "")"))
    }
}

extension ControlMessage.EditAction {
    /// Returns the state of an edited request in words. An edit of a request in flight takes effect when its attempt
    /// ends.
    func words(for state: String) -> String {
        guard state == "inflight" else { return state }
        return switch self {
        case .hold: "inflight until its attempt ends, then held"
        case .cancel: "inflight until its attempt ends, then cancelled"
        case .retry, .release: state
        }
    }

    fileprivate var pastTense: String {
        switch self {
        case .retry: "retried"
        case .hold: "held"
        case .release: "released"
        case .cancel: "cancelled"
        }
    }
}

extension ControlMessage.Edited.Result {
    /// Whether the request was held because the server may have executed it.
    fileprivate var isSentAgain: Bool { endedHold == HoldReason.ambiguous.rawValue }
}

extension ControlMessage.EditedAll {
    /// Whether no request matched.
    fileprivate var isNone: Bool { done == 0 && refused == 0 }
}
