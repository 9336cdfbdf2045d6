internal import ArgumentParser
internal import NetwatchService

/// The `netwatch queue` command.
struct QueueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract: "See and move what the queue keeps.",
        discussion: """
            netwatch queue list --state pending,held
            netwatch queue show 01a1fd77-5af9
            netwatch queue retry 01a1fd77-5af9 01a1fd78
            netwatch queue list --state dead --format json | jq -r .id | netwatch queue retry -

            Ids may be shortened to 8 characters or more, as long as only one request is meant. The service is \
            asked; when none runs, the queue's directory is opened, which its owner may.

            Exit status: 0 done, 1 something was not done, 2 not known to be done, 64 wrong arguments, 69 \
            service not running, 75 service busy, 77 not permitted, 78 the store cannot be used.
            """,
        subcommands: [
            QueueListCommand.self, QueueShowCommand.self, QueueRetryCommand.self, QueueHoldCommand.self,
            QueueReleaseCommand.self, QueueDropCommand.self, QueueFlushCommand.self, QueuePauseCommand.self,
            QueueResumeCommand.self, QueueDeadCommand.self, QueueStatsCommand.self, QueueStagedCommand.self,
            QueueExportCommand.self, QueueImportCommand.self, QueueVerifyCommand.self,
        ]
    )
}
