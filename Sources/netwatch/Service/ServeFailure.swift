internal import NetwatchService
internal import OfflineQueue

/// The errors that end `netwatch serve`, with the options and keys that avoid them.
struct ServeFailure {
    /// Whether `--state-dir` or `NETWATCH_STATE_DIR` names the directory.
    let isDirectoryNamed: Bool
    /// Whether `--socket` names the socket.
    let isSocketNamed: Bool
    /// The file and line, or the variable, that sets `web.listen`; `nil` if `--web` or nothing does.
    let webPlace: String?
    var paths = ServicePaths()

    func error(_ error: QueueError) -> CommandError {
        let failure = CommandError(opening: error)
        guard error.code == .directoryUnusable, !isDirectoryNamed else { return failure }
        return failure.with(hint: "`--state-dir` names another directory")
    }

    func error(_ error: ControlSocketError) -> CommandError {
        CommandError(.unknown, "\(error)", hint: hint(error))
    }

    private func hint(_ error: ControlSocketError) -> String? {
        switch error {
        case .web:
            guard let webPlace else { return "`--web` names another address and port" }
            return
                "`web.listen` in \(Printer.quoted(webPlace)) sets the address; `--web` replaces it, and `--config` "
                + "names another configuration file"
        case .directory, .system:
            guard !isSocketNamed, !paths.isSocketNamed else { return nil }
            let cause = paths.lacksRuntimeDirectory ? "`XDG_RUNTIME_DIR` is not set; " : ""
            return "\(cause)`--socket` names another path"
        case .unusablePath, .inUse, .notASocket: return nil
        }
    }
}
