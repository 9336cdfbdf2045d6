internal import Glibc
internal import Logging
internal import NetwatchEventLoop

/// Runs the programs of hooks. The runs of one program follow one another in the order of the changes.
actor HookPrograms {
    /// The maximum number of programs that run at the same time: 4.
    private static let parallel = 4
    /// The maximum number of runs of one program that run or wait: 100.
    private static let mostRuns = 100

    private let logger: Logger
    private let slots = AsyncSemaphore(permits: HookPrograms.parallel)
    /// The runs of each program that have not ended, in their order.
    private var runs: [HookProgram: [Task<Void, Never>]] = [:]
    private(set) var isStopped = false

    init(logger: Logger) {
        self.logger = logger
    }

    /// Runs a program when its earlier runs have ended. If too many runs wait, it is not run.
    ///
    /// - Parameter variables: Variables of its environment.
    func start(_ program: HookProgram, for message: HookMessage, _ variables: [String: String]) {
        guard !isStopped else { return }
        let earlier = runs[program] ?? []
        guard earlier.count < Self.mostRuns else {
            logger.warning(
                "the program `\(program.path)` of a hook is not run for \(message.subject): too many runs wait",
                metadata: message.fields
            )
            return
        }
        let previous = earlier.last
        let run = Task {
            if let previous { await previous.value }
            await self.run(program, for: message, variables)
            self.removeFirstRun(of: program)
        }
        runs[program] = earlier + [run]
    }

    /// Ends the programs that run, and starts no others. Returns when they have ended.
    func stop() async {
        isStopped = true
        let tasks = runs.values.flatMap { $0 }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    private func removeFirstRun(of program: HookProgram) {
        runs[program]?.removeFirst()
        if runs[program]?.isEmpty == true { runs[program] = nil }
    }

    private func run(
        _ program: HookProgram,
        for message: HookMessage,
        _ variables: [String: String]
    ) async {
        guard (try? await slots.acquire()) != nil else { return }
        defer { slots.release() }
        guard !Task.isCancelled else { return }
        let result = await ChildProcess().run(
            [program.path] + program.arguments,
            environment: Self.environment.merging(variables) { $1 },
            timeout: program.timeout
        ) { [logger] in
            logger.warning(
                "the program `\(program.path)` of a hook exceeded its timeout",
                metadata: message.fields
            )
        }
        log(result, of: program, for: message)
    }

    private func log(
        _ result: Result<ChildProcess.Ending, SystemError>,
        of program: HookProgram,
        for message: HookMessage
    ) {
        switch result {
        case .success(.exited(0)): break
        case .success(let ending):
            logger.warning(
                "the program `\(program.path)` of a hook failed for \(message.subject): \(ending)",
                metadata: message.fields
            )
        case .failure(let error):
            let (event, reason) = (message.event.rawValue, errnoDescription(error.errno))
            logger.warning(
                "the program `\(program.path)` of a hook was not run for \(message.subject) (\(event)): \(reason)",
                metadata: message.fields
            )
        }
    }

    /// The variables of the service that programs inherit. The others describe the service to its own process, such as
    /// the socket of the service manager.
    private static let environment: [String: String] = {
        var variables: [String: String] = [:]
        for name in ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "CREDENTIALS_DIRECTORY"] {
            if let value = getenv(name) { variables[name] = String(cString: value) }
        }
        return variables
    }()
}
