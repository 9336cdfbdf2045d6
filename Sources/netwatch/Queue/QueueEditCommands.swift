internal import ArgumentParser
internal import NetwatchService

/// A command that edits the selected requests: `netwatch queue retry`, `hold`, `release` or `cancel`.
struct QueueEditCommand<Edit: RequestEdit>: AsyncParsableCommand {
    static var configuration: CommandConfiguration { Edit.configuration }

    @OptionGroup var edit: Edit
    @OptionGroup var selection: EditOptions

    mutating func run() async throws {
        try await selection.perform(Edit.action, newKey: edit.newKey)
    }
}

/// What distinguishes a ``QueueEditCommand`` from the others: its action, its help and its own options.
protocol RequestEdit: ParsableArguments {
    static var action: ControlMessage.EditAction { get }
    static var configuration: CommandConfiguration { get }
    /// Whether the requests get new idempotency keys.
    var newKey: Bool { get }
}

extension RequestEdit {
    var newKey: Bool { false }
}

/// The edit of `netwatch queue retry`.
struct RetryEdit: RequestEdit {
    static let action = ControlMessage.EditAction.retry
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Try dead, held or waiting requests again.",
        discussion: """
            netwatch queue retry 01a1fd77-5b52
            netwatch queue retry --all --yes --host api.example.com

            The requests get all their attempts again, and keep their positions in the lane. They also keep their \
            idempotency keys, so a server does not process a request twice. With --new-key, the server processes \
            it again. Without --state, --all selects held and dead requests.

            Exit status: 0 all were edited; 1 some were not, because there is no such request or its state does not \
            permit the edit; 77 some were not, all of them requests of other users.
            """
    )

    @Flag(help: "Use a new idempotency key, so that the server processes the request again.")
    var newKey = false
}

/// The edit of `netwatch queue hold`.
struct HoldEdit: RequestEdit {
    static let action = ControlMessage.EditAction.hold
    static let configuration = CommandConfiguration(
        commandName: "hold",
        abstract: "Hold requests, so that they are not sent until they are released.",
        discussion: """
            netwatch queue hold 01a1fd77-5b52

            If the first request of a FIFO lane is held, the whole lane waits. Without --state, --all selects \
            pending, blocked and inflight requests. A request in flight is held when its attempt ends, unless it \
            is delivered.

            Exit status: 0 all were held; 1 some were not, because there is no such request or it is finished; 77 \
            some were not, all of them requests of other users.
            """
    )
}

/// The edit of `netwatch queue release`.
struct ReleaseEdit: RequestEdit {
    static let action = ControlMessage.EditAction.release
    static let configuration = CommandConfiguration(
        commandName: "release",
        abstract: "Release held requests, whatever the reason of the hold.",
        discussion: """
            netwatch queue release 01a1fd77-5b52
            netwatch queue release --all --yes

            A request that is held as ambiguous is sent again; the server may have received it before. A request \
            that is held because it cannot be decrypted is not released. Without --state, --all selects held requests.

            Each lane with a released request may send one retry at once. Further retries follow as the limit of \
            retries to the origin permits. A closed lane stays closed; `netwatch queue flush` opens it.

            Exit status: 0 all were released; 1 some were not, because there is no such request, it is not held, or \
            it cannot be decrypted; 77 some were not, all of them requests of other users.
            """
    )
}

/// The edit of `netwatch queue cancel`.
struct CancelEdit: RequestEdit {
    static let action = ControlMessage.EditAction.cancel
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancel requests: end unfinished ones, and discard dead ones.",
        discussion: """
            netwatch queue cancel 01a1fd77-5b52 01a1fd77-5b60
            netwatch queue list --lane old --format json | jq -r .id | \\
                netwatch queue cancel -
            netwatch queue cancel --all --state dead

            Cancelling a request ends its attempt, if there is one; the server may have received the request. If \
            the request is delivered first, it is not cancelled. Requests that depend on a cancelled request are \
            held. A cancelled request, even if it was dead, can no longer be retried, and is \
            removed from the history after a day. Without --state, --all selects all unfinished requests.

            Exit status: 0 all were cancelled; 1 some were not, because there is no such request, or it was delivered, \
            replaced or cancelled before; 77 some were not, all of them requests of other users.
            """
    )
}

/// The `netwatch queue credential` command.
struct QueueCredentialCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "credential",
        abstract: "Change the credential of a request.",
        discussion: """
            netwatch queue credential 01a1fd77-5b52 api-token

            A request that is held for `auth` is released, and a pending one is due now. Holds for other reasons \
            continue. A credential is a file in the directory of `netwatch serve --credentials`. The service refuses \
            the name of a credential that does not exist or cannot be used. Without the service, the command does \
            not check the name.

            The signature of a URL that was accepted with `--allow-signature` is removed, and cannot be restored.

            Exit status: 0 changed; 1 not changed: no request or more than one matches the id, or the request is in \
            flight or finished; 64 not changed: there is no such credential, or it cannot be used; 77 not changed: the \
            request belongs to another user.
            """
    )

    @Argument(help: "The id, or at least its first 8 characters.")
    var id: String

    @Argument(help: "The name of the credential.")
    var name: String

    @OptionGroup var queue: QueueOptions

    func validate() throws {
        if id.isEmpty { throw ValidationError("the id must not be empty") }
    }

    mutating func run() async throws {
        let (result, isChecked) = try await queue.withQueue { client, stored in
            let id = try await IDResolver(client: client).id(meantBy: id)
            let result = try await client.post(
                "/v1/requests/\(id.urlEscaped)/credential",
                ControlMessage.Credential(name),
                as: ControlMessage.Edited.Result.self
            )
            return (result, stored == nil)
        }
        let note = isChecked ? "" : "; the name was not checked, because the service is not running"
        Printer.note(Printer.printable("`\(result.id)` uses the credential `\(name)`\(note)"))
    }
}
