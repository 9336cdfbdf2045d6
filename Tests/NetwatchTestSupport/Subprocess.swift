internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// A running program and its output so far.
package final class Subprocess: Sendable {
    /// How a program ended.
    package enum Ending: Hashable, Sendable {
        case exited(CInt)
        case signalled(CInt)
    }

    /// The result of a program that has ended.
    package struct Outcome: Sendable {
        package let pid: Int32
        package let ending: Ending
        package let output: [String]
        package let errors: [String]
    }

    package let pid: Int32
    /// The lines of standard output and standard error, in the order of arrival.
    package let output = Recorder<String>()
    package let errors = Recorder<String>()
    private let ending = Recorder<Ending>()

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - path: The path of the program.
    ///   - arguments: The arguments, without the program's name.
    ///   - environment: Variables that are added to the test's environment.
    ///   - input: The standard input; `nil` for `/dev/null`.
    ///   - socket: The descriptor that becomes descriptor 3; `nil` for none.
    ///   - namespace: The network namespace; `nil` for the test's own.
    package init(
        _ path: String,
        _ arguments: [String],
        environment: [String: String] = [:],
        input: CInt? = nil,
        passing socket: CInt? = nil,
        in namespace: NetworkNamespace? = nil
    ) throws {
        let output = try Self.pipe()
        let errors = try Self.pipe()
        let spawn: @Sendable () -> Result<pid_t, SystemError> = {
            Self.spawn(
                [path] + arguments,
                environment,
                input: input,
                output: output.write,
                errors: errors.write,
                passing: socket
            )
        }
        let result = namespace?.run(spawn) ?? spawn()
        close(output.write)
        close(errors.write)
        pid = try result.get()
        try Self.read(output.read, into: self.output)
        try Self.read(errors.read, into: self.errors)
        try awaitEnding()
    }

    /// Sends a signal. Has no effect after the program's end.
    package func signal(_ signal: CInt) {
        if ending.values.isEmpty { kill(pid, signal) }
    }

    /// Waits until the program has ended and all its output is recorded.
    package func end() async throws -> Ending {
        try await ending.wait { !$0.isEmpty }
        return ending.values[0]
    }

    /// Waits for the end and returns the result.
    package func outcome() async throws -> Outcome {
        let ending = try await end()
        return Outcome(pid: pid, ending: ending, output: output.values, errors: errors.values)
    }

    private func awaitEnding() throws {
        let (pid, ending) = (pid, ending)
        // All lines are recorded when both pipes were read to their end.
        let output = output, errors = errors
        try startDetachedThread(named: "waitpid") {
            var status: CInt = 0
            while waitpid(pid, &status, 0) == -1, errno == EINTR {}
            output.waitForClosing()
            errors.waitForClosing()
            ending.record(status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .signalled(status & 0x7f))
        }
    }

    private static func pipe() throws -> (read: CInt, write: CInt) {
        var ends: [CInt] = [0, 0]
        // `O_CLOEXEC` must be set atomically: a program that another thread starts meanwhile would keep the pipe open.
        try systemCall("pipe2") { pipe2(&ends, O_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func read(_ descriptor: CInt, into lines: Recorder<String>) throws {
        guard let stream = fdopen(descriptor, "r") else { throw SystemError(call: "fdopen", errno: errno) }
        let handle = StreamHandle(stream: stream)
        try startDetachedThread(named: "reader") {
            handle.forEachLine { lines.record($0) }
            lines.close()
        }
    }

    private static func spawn(
        _ arguments: [String],
        _ environment: [String: String],
        input: CInt?,
        output: CInt,
        errors: CInt,
        passing socket: CInt?
    ) -> Result<pid_t, SystemError> {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        } else {
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO)
        if let socket { posix_spawn_file_actions_adddup2(&actions, socket, 3) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        // The threads of the tests block every signal, and the program must not inherit that.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        // It must not inherit an ignored SIGINT either, which shells set for background commands.
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        var pid: pid_t = 0
        let result = withCStrings(arguments) { argv in
            withCStrings(merged(environment)) { envp in
                posix_spawn(&pid, arguments[0], &actions, &attributes, argv, envp)
            }
        }
        return result == 0
            ? .success(pid) : .failure(SystemError(call: "posix_spawn \(arguments[0])", errno: result))
    }

    private static func merged(_ additions: [String: String]) -> [String] {
        var entries: [String] = []
        var next = environ
        while let entry = next.pointee {
            entries.append(String(cString: entry))
            next += 1
        }
        let kept = entries.filter { entry in !additions.keys.contains { entry.hasPrefix($0 + "=") } }
        return kept + additions.map { "\($0)=\($1)" }
    }

    private static func withCStrings<Result>(
        _ strings: [String],
        _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let pointers = strings.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        return body(pointers + [nil])
    }
}

/// Passes a stream to the only thread that reads it.
private struct StreamHandle: @unchecked Sendable {
    // Used only by that thread, from its start to its end.
    let stream: UnsafeMutablePointer<FILE>

    func forEachLine(_ body: (String) -> Void) {
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer {
            free(line)
            fclose(stream)
        }
        while getline(&line, &capacity, stream) > 0 {
            var text = String(cString: line!)
            if text.hasSuffix("\n") { text.removeLast() }
            body(text)
        }
    }
}
