internal import ArgumentParser

/// The `netwatch queue retry` command.
struct QueueRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Try requests anew that were given up, are held or wait.",
        discussion: """
            netwatch queue retry 01a1fd77-5b52
            netwatch queue retry --all --yes --host api.example.com

            As if for the first time, in their old place. They keep their idempotency key, so that a server \
            that has taken one does not take it again; --new-key is for when it should. --all is those that \
            are held or dead.
            """
    )

    @Flag(help: "With another idempotency key: the server takes it for a new request.")
    var newKey = false

    @OptionGroup var edit: QueueEditing

    mutating func run() async throws {
        try await edit.perform(.retry, newKey: newKey)
    }
}

/// The `netwatch queue hold` command.
struct QueueHoldCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hold",
        abstract: "Keep requests from being sent until they are released.",
        discussion: """
            netwatch queue hold 01a1fd77-5b52

            A lane that keeps order waits for its held head. --all is those that wait.
            """
    )

    @OptionGroup var edit: QueueEditing

    mutating func run() async throws {
        try await edit.perform(.hold)
    }
}

/// The `netwatch queue release` command.
struct QueueReleaseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "release",
        abstract: "Let held requests go on, for whatever reason they are held.",
        discussion: """
            netwatch queue release 01a1fd77-5b52
            netwatch queue release --all --yes
            """
    )

    @OptionGroup var edit: QueueEditing

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

            One that is being sent is dropped unless it is delivered. What waits for a dropped request is \
            held. --all is everything that is on its way.
            """
    )

    @OptionGroup var edit: QueueEditing

    mutating func run() async throws {
        try await edit.perform(.drop)
    }
}
