internal import ArgumentParser
internal import NetwatchService

/// The `netwatch queue` command.
struct QueueCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract: "List and change the requests of the queue.",
        discussion: """
            netwatch queue list --state pending,held
            netwatch queue show 01a1fd77-5af9
            netwatch queue retry 01a1fd77-5af9 01a1fd78
            netwatch queue list --state dead --format json | jq -r .id | \\
                netwatch queue retry -

            An id can be shortened to its first 8 or more characters, if only one request matches.

            The commands use the service. If the service is not running, they open the queue's directory, which \
            only its owner and root can do. If --socket or NETWATCH_SOCKET is given, they open the directory only \
            with --state-dir.

            Exit status: 0 done; 1 not done, or not for all requests; 2 failed, or unknown whether done; 64 \
            wrong arguments; 69 service not running; 75 service busy; 77 permission denied; 78 the queue's \
            store is unusable.
            """,
        subcommands: [
            QueueListCommand.self, QueueShowCommand.self, QueueEditCommand<RetryEdit>.self,
            QueueEditCommand<HoldEdit>.self, QueueEditCommand<ReleaseEdit>.self,
            QueueEditCommand<CancelEdit>.self, QueueCredentialCommand.self, QueueFlushCommand.self,
            QueuePauseCommand.self, QueueResumeCommand.self, QueueDeadCommand.self, QueueStatsCommand.self,
            QueueStagedCommand.self,
            QueueExportCommand.self, QueueImportCommand.self, QueueVerifyCommand.self,
            QueueEventsCommand.self,
        ]
    )
}
