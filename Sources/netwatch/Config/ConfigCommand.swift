internal import ArgumentParser
internal import NetwatchService

/// The `netwatch config` commands.
struct ConfigCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Check and show the configuration of the service.",
        discussion: """
            netwatch config check ./netwatch.toml
            netwatch config show --config ./netwatch.toml
            netwatch config default > netwatch.toml
            """,
        subcommands: [Check.self, Show.self, Default.self]
    )

    /// The `netwatch config check` command.
    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Check the configuration files.",
            discussion: """
                netwatch config check && systemctl reload netwatch
                netwatch config check ./netwatch.toml
                netwatch config check --credentials ./credentials

                Prints every fault with its file, line and column, in the order of the files and lines. After a fault \
                in the syntax, the rest of that file is not checked. Environment variables such as \
                NETWATCH_QUEUE_INFLIGHT are checked after the files. A variable that begins with NETWATCH_ and has no \
                effect is a warning.

                If root checks the default files, a file that the owner of the queue's directory cannot read is a \
                fault, because the service runs as that user.

                The credential files must belong to root or to the user of the service: for root, the owner of the \
                queue's directory, for any other user the user itself. \
                Without --credentials, the credential files are not checked. The service starts even if some of them \
                have faults, and holds the requests that use them.

                Exit status: 0 without faults; 78 if the configuration files, the variables or the credential files of \
                --credentials have faults; 75 if nothing has a fault, but the group database cannot be read.
                """
        )

        @Argument(
            help: .init(
                "The configuration file, as an alternative to --config. The default is the same.",
                valueName: "file"
            )
        )
        var path: String?

        @Option(
            help: .init(
                "Also check the credential files in this directory. Default: none is checked.",
                valueName: "directory"
            )
        )
        var credentials: String?

        @OptionGroup var file: ConfigurationOption

        func validate() throws {
            if credentials == "" { throw ValidationError("`--credentials` must not be empty") }
            if path == "" { throw ValidationError("the file must not be empty") }
            if path != nil, file.config != nil {
                throw ValidationError("a file cannot be combined with `--config`")
            }
        }

        mutating func run() async throws {
            let user = CredentialOwner.id(running: nil, directory: ServicePaths().stateDirectory)
            let directory = CredentialDirectory(path: credentials, user: user)
            let faults = await Self.faults(in: directory)
            for fault in faults { Printer.error(Printer.printable(fault)) }
            let files = ServicePaths().configurationFiles(named: path ?? file.config)
            ConfigurationOption.warnAboutUnusedVariables()
            let result: ConfigurationFiles.Result
            do throws(CommandError) {
                result = try file.reading { () throws(InvalidConfiguration) in try files.readForService() }
            } catch {
                throw Self.failure(error, besides: faults)
            }
            if !faults.isEmpty { throw ExitStatus.unusableStore.exitCode }
            Printer.line(result.verdict)
            if credentials != nil { Printer.line(await directory.verdict) }
        }

        /// Returns the error of the command if the configuration cannot be read. A fault of a credential file prevails
        /// over a cause that may be temporary.
        static func failure(_ error: CommandError, besides credentialFaults: [String]) -> CommandError {
            credentialFaults.isEmpty ? error : CommandError(.unusableStore, error.message, hint: error.hint)
        }

        private static func faults(in directory: CredentialDirectory) async -> [String] {
            do {
                return try await directory.check()
            } catch {
                return ["\(error)"]
            }
        }
    }

    /// The `netwatch config show` command.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show",
            abstract: "Show the effective configuration, with the origin of each value.",
            discussion: """
                netwatch config show

                The output is a configuration file. The origin of a value is a line of a file, an environment variable \
                or `default`. If options of `netwatch serve` replace values, the output does not show that.

                Exit status: 0 if the configuration was printed; 78 if the files or variables have faults; 75 if the \
                group database cannot be read.
                """
        )

        @OptionGroup var file: ConfigurationOption

        func run() throws {
            ConfigurationOption.warnAboutUnusedVariables()
            let result = try file.reading { () throws(InvalidConfiguration) in try file.files.read() }
            Printer.data(ConfigurationText.effective(result).trimmingLastNewline)
        }
    }

    /// The `netwatch config default` command.
    struct Default: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "default",
            abstract: "Print a configuration file with every key, its default and its documentation.",
            discussion: """
                netwatch config default > netwatch.toml

                Exit status: 0.
                """
        )

        func run() {
            Printer.data(ConfigurationText.defaultFile.trimmingLastNewline)
        }
    }
}

extension ConfigurationFiles {
    /// Reads the files and the environment variables alone.
    func read() throws(InvalidConfiguration) -> Result {
        let paths = ServicePaths()
        return try read(
            into: ServiceConfiguration(stateDirectory: paths.stateDirectory, socket: paths.socket)
        )
    }

    /// Reads the files and the environment variables alone. If root reads the default files, they must be readable for
    /// the owner of the queue's directory, who runs the service.
    func readForService() throws(InvalidConfiguration) -> Result {
        let result = try read()
        try requireReadable(result, byOwnerOf: ServicePaths().stateDirectory)
        return result
    }
}

extension ConfigurationFiles.Result {
    /// The result of a check for people: the files and variables, none of which has a fault.
    var verdict: String {
        let sources = files + variables
        return sources.isEmpty
            ? Printer.printable("there is no file `\(path)` or `\(path).d/*.toml`, so the defaults apply")
            : "no faults: \(Printer.printable(sources.joined(separator: ", ")))"
    }
}

extension CredentialDirectory {
    /// The result of a check for people: the number of credentials, none of which has a fault.
    var verdict: String {
        get async {
            let count = CountText.format(await names().count, "credential")
            return "no faults: \(count)" + (path.map { " in `\($0)`" } ?? "")
        }
    }
}

extension String {
    /// The text without a line break at its end, which the output adds.
    fileprivate var trimmingLastNewline: String { hasSuffix("\n") ? String(dropLast()) : self }
}
