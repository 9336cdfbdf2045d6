internal import ArgumentParser
internal import NetwatchService

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
