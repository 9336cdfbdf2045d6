internal import CNetwatchLinux
internal import CNetwatchTestSupport
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import Testing

/// A program in a child process, with its output so far. It inherits no descriptors except those that the initialiser
/// names.
///
/// The test run fails if the program crashes, even if no test checks how it ended.
package final class Subprocess: Sendable {
    /// The way in which a program ended.
    package enum Ending: Hashable, Sendable {
        case exited(CInt)
        case signalled(CInt)

        /// - Parameter status: The status of waitpid(2).
        fileprivate init(status: CInt) {
            self = status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .signalled(status & 0x7f)
        }
    }

    /// The result of a program that has ended.
    package struct Outcome: Sendable {
        package let pid: Int32
        package let ending: Ending
        package let output: [String]
        package let errors: [String]
    }

    package let pid: Int32
    /// The lines of standard output so far.
    package let output = Recorder<String>()
    /// The lines of standard error so far.
    package let errors = Recorder<String>()
    /// The status of waitpid(2), when the program has ended.
    private let status = Recorder<CInt>()
    /// The signals that the test has sent.
    private let sent = Recorder<CInt>()

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - path: The path of the program.
    ///   - arguments: The arguments, without the program's name.
    ///   - environment: The variables to add to the test's environment. Default: none.
    ///   - input: The descriptor of the standard input. Default: `nil`, `/dev/null`.
    ///   - socket: A descriptor that the program inherits as descriptor 3. Default: `nil`, none.
    ///   - namespace: The network namespace of the program. Default: `nil`, the test's own.
    ///   - mayCrash: Whether the test expects a crash. Default: `false`, a crash fails the test run.
    package init(
        _ path: String,
        _ arguments: [String],
        environment: [String: String] = [:],
        input: CInt? = nil,
        passing socket: CInt? = nil,
        in namespace: NetworkNamespace? = nil,
        mayCrash: Bool = false
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
        try awaitEnding(of: ([path] + arguments).joined(separator: " "), mayCrash: mayCrash)
    }

    /// Sends a signal to the program. Has no effect if the program has ended.
    package func signal(_ signal: CInt) {
        guard status.values.isEmpty else { return }
        sent.record(signal)
        kill(pid, signal)
    }

    /// Waits until the program has ended and all its output has been recorded. Returns how it ended.
    ///
    /// - Throws: ``TimedOut`` if the program takes longer than the time limit. It is killed then.
    package func end(within timeLimit: Duration = .seconds(50)) async throws -> Ending {
        do {
            try await status.wait(timeout: timeLimit) { !$0.isEmpty }
        } catch is TimeOut {
            let error = TimedOut(of: self)
            signal(SIGKILL)
            throw error
        }
        return Ending(status: status.values[0])
    }

    /// Whether the kernel wrote a core dump when the program ended (`WCOREDUMP`); `false` while it runs.
    package var dumpedCore: Bool { status.values.contains { $0 & 0x80 != 0 } }

    /// The error for a program that does not end: its last output, and what its threads wait for.
    package struct TimedOut: Error, CustomStringConvertible {
        package let description: String

        init(of program: Subprocess) {
            let last = program.output.values.suffix(3) + program.errors.values.suffix(10)
            let threads = FileManager.default.threads(of: program.pid)
            description = """
                process \(program.pid) does not end; its last output: \(last); \
                its threads: \(threads.isEmpty ? "none, so another process keeps its output open" : "\(threads)")
                """
        }
    }

    /// Waits until the program has ended, and returns its result.
    package func outcome() async throws -> Outcome {
        let ending = try await end()
        return Outcome(pid: pid, ending: ending, output: output.values, errors: errors.values)
    }

    private func awaitEnding(of command: String, mayCrash: Bool) throws {
        let (pid, result, sent) = (pid, status, sent)
        let test = Test.current.map { " in the test \($0.name)" } ?? ""
        // Waits for both pipes to be read to their end, because only then all lines have been recorded.
        let output = output, errors = errors
        try startDetachedThread(named: "waitpid") {
            var status: CInt = 0
            while waitpid(pid, &status, 0) == -1, errno == EINTR {}
            output.waitForClosing()
            errors.waitForClosing()
            let ending = Ending(status: status)
            if !mayCrash, Self.isCrash(ending, sent: sent.values, errors: errors.values) {
                // On this thread the issue belongs to no test, so scripts/common does not repeat the failed tests.
                Issue.record("`\(command)` crashed\(test): \(ending), \(errors.values.suffix(10))")
            }
            result.record(status)
        }
    }

    /// Returns whether a program crashed: it ended by a signal that the test did not send or with the status of a
    /// sanitizer, or it wrote the report of a trap or a sanitizer. It writes the report before it ends, so the test may
    /// have killed it since.
    ///
    /// SIGKILL is no crash, because the processes of the crash tests kill themselves with it.
    package static func isCrash(_ ending: Ending, sent: [CInt], errors: [String]) -> Bool {
        let reports = ["Fatal error: ", "*** Signal ", "Sanitizer: "]
        if errors.contains(where: { line in reports.contains { line.contains($0) } }) { return true }
        switch ending {
        case .signalled(let signal): return signal != SIGKILL && !sent.contains(signal)
        // 66 is the thread sanitizer's, and 23 the one that scripts/sanitize sets. A shell adds 128 to a signal.
        case .exited(let status):
            return [23, 66].contains(status) || (132...139).contains(status) && status != 137
        }
    }

    private static func pipe() throws -> (read: CInt, write: CInt) {
        var ends: [CInt] = [0, 0]
        // O_CLOEXEC must be set atomically, because a program that another thread starts now would keep the pipe open.
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
        // Foundation opens files without O_CLOEXEC, so the program could inherit one that another test writes now.
        netwatch_close_inherited(&actions, socket == nil ? 3 : 4)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        // The tests' threads block all signals. The program must not inherit this mask.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        // A shell makes background commands ignore SIGINT. The program must not inherit that either.
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
}

/// A stream that is passed to the only thread that reads it.
private struct StreamHandle: @unchecked Sendable {
    // Only the reading thread uses the stream, so the type can be `Sendable`.
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

extension FileManager {
    /// The name of each thread of a process, and the kernel function in which it waits; empty if the process has ended.
    fileprivate func threads(of pid: Int32) -> [String] {
        let tasks = "/proc/\(pid)/task"
        return ((try? contentsOfDirectory(atPath: tasks)) ?? []).map { task in
            ["comm", "wchan"].map { file in
                let bytes = contents(atPath: "\(tasks)/\(task)/\(file)") ?? Data()
                return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines)
            }.joined(separator: " in ")
        }
    }
}
