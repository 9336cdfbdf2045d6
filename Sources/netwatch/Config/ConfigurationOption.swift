internal import ArgumentParser
internal import Glibc
internal import NetwatchService

/// The option that names the configuration file of the service.
struct ConfigurationOption: ParsableArguments {
    @Option(
        help: .init(
            """
            The configuration file. Files in FILE.d/*.toml are read after it. Default: $NETWATCH_CONFIG; if it is not \
            set, netwatch.toml in $CONFIGURATION_DIRECTORY; if neither is set, \
            \(ConfigurationFiles.systemFile). Only a file that --config or $NETWATCH_CONFIG names must exist.
            """,
            valueName: "file"
        )
    )
    var config: String?

    func validate() throws {
        if config?.isEmpty == true { throw ValidationError("`--config` must not be empty") }
    }

    static let keysHint = "`netwatch config default` prints all keys with their accepted values"

    var files: ConfigurationFiles { ServicePaths().configurationFiles(named: config) }

    /// Prints a warning for each environment variable that looks as if it had an effect, but has none.
    static func warnAboutUnusedVariables() {
        for variable in ServicePaths().unusedVariables { Printer.warning(Printer.printable("\(variable)")) }
    }

    /// Calls a function that reads the files. If they have faults, prints all of them.
    ///
    /// - Throws: ``CommandError`` with the exit status 78 for faults; 75 if all of them may be temporary.
    func reading<Result>(_ body: () throws(InvalidConfiguration) -> Result) throws(CommandError) -> Result {
        do {
            return try body()
        } catch {
            for problem in error.problems.dropLast() { Printer.error(Printer.printable("\(problem)")) }
            let last =
                error.problems.last.map { Printer.printable("\($0)") } ?? "the configuration has faults"
            if error.isTemporary { throw CommandError(.tryAgain, last) }
            // A file that cannot be read has no position.
            let isRead = error.problems.contains { $0.line > 0 }
            throw CommandError(.unusableStore, last, hint: isRead ? Self.keysHint : nil)
        }
    }
}

/// The user whose credential files the service accepts, besides those of root.
enum CredentialOwner {
    /// Returns the user of this process. For root, returns the user of the service: of the process that runs it, or
    /// else the owner of the queue's directory.
    ///
    /// - Parameters:
    ///   - running: The user of the running service; `nil` if none runs or its user is not known.
    ///   - directory: The queue's directory.
    ///   - process: The user of this process. Default: the effective user.
    static func id(running: UInt32?, directory: String, process: UInt32 = geteuid()) -> UInt32 {
        guard process == 0 else { return process }
        if let running { return running }
        return (try? DirectoryOwner(of: directory))?.user.id ?? process
    }
}
