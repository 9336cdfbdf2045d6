internal import ArgumentParser

/// The `netwatch queue retry` command.
struct QueueRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Try requests again that failed, are held, or wait.",
        discussion: """
            netwatch queue retry 01a1fd77-5b52
            netwatch queue retry --all --yes --host api.example.com

            The requests start over, in their old position. They keep their idempotency keys, so that a server \
            that has processed a request does not process it again; with --new-key it does. --all selects held \
            and dead requests.
            """
    )

    @Flag(help: "Use a new idempotency key, so that the server processes the request again.")
    var newKey = false

    @OptionGroup var edit: EditOptions

    mutating func run() async throws {
        try await edit.perform(.retry, newKey: newKey)
    }
}

/// The `netwatch queue hold` command.
struct QueueHoldCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hold",
        abstract: "Hold requests: they are not sent until they are released.",
        discussion: """
            netwatch queue hold 01a1fd77-5b52

            If the first request of a FIFO lane is held, the whole lane waits. --all selects waiting requests.
            """
    )

    @OptionGroup var edit: EditOptions

    mutating func run() async throws {
        try await edit.perform(.hold)
    }
}

/// The `netwatch queue release` command.
struct QueueReleaseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "release",
        abstract: "Release held requests, whatever the reason of the hold.",
        discussion: """
            netwatch queue release 01a1fd77-5b52
            netwatch queue release --all --yes
            """
    )

    @OptionGroup var edit: EditOptions

    mutating func run() async throws {
        try await edit.perform(.release)
    }
}

/// The `netwatch queue drop` command.
struct QueueDropCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop",
        abstract: "Drop requests: they are not sent any more.",
        discussion: """
            netwatch queue drop 01a1fd77-5b52 01a1fd77-5b60
            netwatch queue list --lane old --format json | jq -r .id | netwatch queue drop -

            A request that is being sent is dropped unless it is delivered. Requests that depend on a dropped \
            one are held. --all selects all unfinished requests.
            """
    )

    @OptionGroup var edit: EditOptions

    mutating func run() async throws {
        try await edit.perform(.drop)
    }
}
