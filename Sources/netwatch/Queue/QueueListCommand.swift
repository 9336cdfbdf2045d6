internal import ArgumentParser
internal import NetwatchService
internal import OfflineQueue

/// A host that an option selects.
enum HostName {
    /// - Throws: An error for a text that cannot be a URL's host. It would match no request.
    static func argument(_ text: String) throws -> String {
        guard Origin.host(named: text) != nil else {
            throw ValidationError("\(Printer.quoted(text)) is not \(Origin.acceptedHosts(insteadOf: text))")
        }
        return text
    }
}

/// A user that an option selects.
enum UserName {
    /// - Throws: An error for a text that is neither an id nor the name of a user of this machine.
    static func argument(_ text: String) throws -> UInt32 {
        if let id = UInt32(text) { return id }
        guard let user = SystemUser(named: text) else {
            throw ValidationError("\(Printer.quoted(text)) is neither the name nor the id of a user")
        }
        return user.id
    }
}

/// Options that select lanes.
struct LaneFilter: ParsableArguments {
    @Option(help: "Only requests to this host.", transform: HostName.argument)
    var host: String?

    @Option(help: "Only requests of lanes with this label; empty for lanes without a label.")
    var lane: String?

    @Option(help: "Only requests of this user: a name or an id.", transform: UserName.argument)
    var submitter: UInt32?

    /// Returns the given options of the filter, in backticks; `nil` if there are none.
    func description(states: [QueuedRequest.State], tag: String?) -> String? {
        let options: [(String, String?)] = [
            ("--state", states.isEmpty ? nil : states.map(\.rawValue).joined(separator: ",")),
            ("--host", host), ("--lane", lane.map { $0.isEmpty ? "''" : $0 }), ("--tag", tag),
            ("--submitter", submitter.map(String.init)),
        ]
        let given = options.compactMap { name, value in value.map { "\(name) \($0)" } }
        return given.isEmpty ? nil : Printer.quoted(given.joined(separator: " "))
    }

    /// Calls `body` with each page of the matching requests.
    ///
    /// - Parameters:
    ///   - states: The states to select; empty for any.
    ///   - tag: The tag to select; `nil` for any.
    ///   - limit: The maximum number of requests.
    /// - Returns: Whether there are more requests.
    @discardableResult
    func forEachPage(
        of client: ServiceClient,
        states: [QueuedRequest.State],
        tag: String? = nil,
        limit: Int,
        _ body: (ControlMessage.List) async throws -> Void
    ) async throws -> Bool {
        var (left, next): (Int, String?) = (limit, nil)
        repeat {
            var query = ["limit=\(min(left, ControlMessage.longestPage))"]
            query += states.map { "state=\($0.rawValue)" }
            query += parameters([("tag", tag), ("after", next)])
            let target = "/v1/requests?" + query.joined(separator: "&")
            let page = try await client.get(target, as: ControlMessage.List.self)
            try await body(page)
            left -= page.requests.count
            next = page.next
        } while next != nil && left > 0
        return next != nil
    }

    /// Returns the parameters of a query for the selected lanes, and others that have a value.
    func parameters(_ others: [(name: String, value: String?)]) -> [String] {
        let own = [("host", host), ("lane", lane), ("submitter", submitter.map(String.init))]
        return (own + others).compactMap { name, value in value.map { "\(name)=\($0.urlEscaped)" } }
    }
}

/// The option that selects a tag.
struct TagFilter: ParsableArguments {
    @Option(help: "Only requests with this tag.")
    var tag: String?

    func validate() throws {
        if tag == "" { throw ValidationError("`--tag` must not be empty") }
    }
}

/// Options that select states.
struct StateFilter: ParsableArguments {
    @Option(
        help:
            "Only requests in these states: \(QueuedRequest.State.names). Repeatable; commas separate several states.",
        transform: { try QueuedRequest.State.named($0) }
    )
    var state: [[QueuedRequest.State]] = []

    /// The selected states; empty for any.
    var wanted: [QueuedRequest.State] { state.flatMap(\.self) }
}

extension QueuedRequest.State {
    fileprivate static let names = allCases.map(\.rawValue).joined(separator: ", ")

    fileprivate static func named(_ text: String) throws -> [QueuedRequest.State] {
        try text.split(separator: ",", omittingEmptySubsequences: false).map { name in
            guard let state = QueuedRequest.State(rawValue: String(name)) else {
                throw ValidationError("`\(name)` is not a state; accepted: \(names)")
            }
            return state
        }
    }
}

/// The length and format of a listing.
struct ListOptions: ParsableArguments {
    @Option(name: [.customShort("n"), .long], help: "The maximum number of requests to list.")
    var limit = 100

    @Option(name: .shortAndLong, help: "The output format: text, or json for one object per line.")
    var format = OutputFormat.text

    @Flag(help: "End with 1 if a request is listed.")
    var exitCode = false

    @OptionGroup var color: ColorOption

    func validate() throws {
        if limit < 1 { throw ValidationError("`-n` is \(limit); it must be at least 1") }
    }

    /// Prints the selected requests.
    ///
    /// - Parameter kind: What the command calls its requests, if it does not take the states as options.
    /// - Throws: The exit status 1 with `--exit-code`, if a request is listed.
    func print(
        _ filter: LaneFilter,
        states: [QueuedRequest.State],
        kind: String? = nil,
        tag: String?,
        _ client: ServiceClient
    ) async throws {
        var (hasRows, counts, holds) = (false, QueueCounts(), Set<String>())
        let hasMore = try await filter.forEachPage(of: client, states: states, tag: tag, limit: limit) {
            page in
            counts = page.counts
            holds.formUnion(page.requests.compactMap { $0.whole.flatMap(Self.explanation) })
            switch format {
            case .json:
                for entry in page.requests {
                    Printer.json(ControlMessage.Versioned(entry), with: ControlMessage.encoder)
                }
            case .text: QueueTable(page.requests).print(withHeader: !hasRows)
            }
            hasRows = hasRows || !page.requests.isEmpty
        }
        if hasMore { Printer.note("there are more requests; `-n` raises the limit") }
        if format == .text {
            for hold in holds.sorted() { Printer.note(hold) }
            let options = filter.description(states: kind == nil ? states : [], tag: tag)
            if !hasRows, let note = Self.emptyNote(kind, options) { Printer.note(note) }
            // The service counts all requests, whatever the list selects.
            let isWhole = states.isEmpty && options == nil
            Printer.note((isWhole ? "" : "whole queue: ") + QueueTable.summary(counts))
        }
        if exitCode, hasRows { throw ExitStatus.no.exitCode }
    }

    /// Returns the note under an empty list; `nil` if the list selects all requests.
    private static func emptyNote(_ kind: String?, _ options: String?) -> String? {
        if let options { return "no \(kind.map { "\($0) " } ?? "")request matches \(options)" }
        return kind.map { "there are no \($0) requests" }
    }

    /// Returns the hold reason of a held request with its description.
    private static func explanation(_ entry: QueuedRequest) -> String? {
        guard let reason = entry.holdReason else { return nil }
        return HoldText.description(reason, entry.reason).map { "held (\(reason.rawValue)): \($0)" }
    }
}

/// The `netwatch queue list` command.
struct QueueListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract:
            "List requests: unfinished ones in the order of acceptance, then finished ones, newest first.",
        discussion: """
            netwatch queue list
            netwatch queue list --state pending,held --host api.example.com
            netwatch queue list --tag readings
            netwatch queue list -n 100000 --format json
            netwatch queue list --state held,dead --exit-code

            Unfinished requests are not listed in the order in which they are sent: that order depends on lanes, \
            priorities, times and paths. `netwatch queue show` prints what a request waits for.

            Exit status: 0 if the list was printed, even if it is empty. With --exit-code: 1 if it is not empty.
            """
    )

    @OptionGroup var states: StateFilter
    @OptionGroup var filter: LaneFilter
    @OptionGroup var tags: TagFilter
    @OptionGroup var listing: ListOptions
    @OptionGroup var queue: QueueOptions

    mutating func run() async throws {
        try await queue.withQueue {
            try await listing.print(filter, states: states.wanted, tag: tags.tag, $0)
        }
    }
}

/// The `netwatch queue dead` command.
struct QueueDeadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead",
        abstract: "List dead requests, which the queue has given up.",
        discussion: """
            netwatch queue dead
            netwatch queue dead --format json | jq -r .id | netwatch queue retry -
            netwatch queue dead --exit-code >/dev/null || echo look

            Exit status: 0 if the list was printed, even if it is empty. With --exit-code: 1 if it is not empty.
            """
    )

    @OptionGroup var filter: LaneFilter
    @OptionGroup var tags: TagFilter
    @OptionGroup var listing: ListOptions
    @OptionGroup var queue: QueueOptions

    mutating func run() async throws {
        try await queue.withQueue {
            try await listing.print(filter, states: [.dead], kind: "dead", tag: tags.tag, $0)
        }
    }
}
