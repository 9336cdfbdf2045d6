internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// A program in a child process, in a separate process group. Standard input is empty.
package final class ChildProcess: Sendable {
    /// Where a program writes.
    enum Output: Sendable {
        /// Both outputs go to standard error of this process, so the output of a program of the service is in its log.
        case log
        /// Standard output goes to a descriptor of this process, and standard error is dropped.
        case descriptor(CInt)
    }

    /// How a program ended.
    enum Ending: Hashable, Sendable, CustomStringConvertible {
        case exited(CInt)
        case signalled(CInt)

        /// - Parameter status: The status of `waitpid(2)`.
        fileprivate init(status: CInt) {
            self = status & 0x7f == 0 ? .exited(status >> 8 & 0xff) : .signalled(status & 0x7f)
        }

        var description: String {
            switch self {
            case .exited(let status): "exit status \(status)"
            case .signalled(let signal): "signal \(signal)"
            }
        }
    }

    /// The time between SIGTERM and SIGKILL: 2 s.
    private static let grace = Duration.seconds(2)
    /// The time for which a program that is being written is started again: 1 s.
    private static let longestWriting = Duration.seconds(1)
    /// The time between two starts of such a program in microseconds: 20 ms.
    private static let restartPause: UInt32 = 20_000
    /// The thread of a program only waits.
    private static let stackSize = 256 * 1024

    private struct State {
        /// The id of the process while it may receive signals: it runs, or it has ended and still has its id.
        var pid: pid_t?
        /// The last signal of ``terminate()``. A process that starts later receives it, too.
        var signal: CInt?
    }

    private let state = Lock(State())
    /// The children that a thread waits for by their ids.
    private static let awaited = Lock<Set<pid_t>>([])

    /// Runs a program until it ends. Must be called only once.
    ///
    /// At the timeout, and when the task is cancelled, the process group receives SIGTERM. If the program has not ended
    /// 2 s later, the process group receives SIGKILL. If it ends earlier, the rest of its process group receives
    /// SIGKILL then.
    ///
    /// - Parameters:
    ///   - command: The path of the program, and its arguments.
    ///   - environment: All variables of its environment.
    ///   - output: Where the program writes. Default: the log.
    ///   - onTimeout: Called at the timeout. Default: does nothing.
    func run(
        _ command: [String],
        environment: [String: String],
        output: Output = .log,
        timeout: Duration,
        onTimeout: @escaping @Sendable () -> Void = {}
    ) async -> Result<Ending, SystemError> {
        let timer = Task {
            guard (try? await Task.sleep(for: timeout)) != nil else { return }
            onTimeout()
            await self.terminate()
        }
        defer { timer.cancel() }
        return await withTaskCancellationHandler {
            await runInThread(command, environment, output)
        } onCancel: {
            Task { await self.terminate() }
        }
    }

    private func runInThread(
        _ command: [String],
        _ environment: [String: String],
        _ output: Output
    ) async -> Result<Ending, SystemError> {
        await withCheckedContinuation { continuation in
            do throws(SystemError) {
                try startDetachedThread(named: "nw-program", stackSize: Self.stackSize) {
                    continuation.resume(returning: self.runAndWait(command, environment, output))
                }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }

    private func terminate() async {
        signal(SIGTERM)
        try? await Task.sleep(for: Self.grace)
        signal(SIGKILL)
    }

    private func signal(_ signal: CInt) {
        state.withLock { state in
            state.signal = signal
            if let pid = state.pid { _ = kill(-pid, signal) }
        }
    }

    private func runAndWait(
        _ command: [String],
        _ environment: [String: String],
        _ output: Output
    ) -> Result<Ending, SystemError> {
        let child: pid_t
        do throws(SystemError) {
            child = try start(command, environment, output)
        } catch {
            return .failure(error)
        }
        state.withLock { state in
            state.pid = child
            if let signal = state.signal { _ = kill(-child, signal) }
        }
        // The process keeps its id until `waitpid`. Afterwards another process may get it, which must get no signal.
        var information = siginfo_t()
        while waitid(P_PID, id_t(child), &information, WEXITED | WNOWAIT) == -1, errno == EINTR {}
        state.withLock { state in
            state.pid = nil
            if state.signal != nil { _ = kill(-child, SIGKILL) }
        }
        return .success(Ending(status: Self.reap(child)))
    }

    // MARK: Starting

    /// Starts the program. Blocks for up to ``longestWriting`` while another process has it open for writing.
    ///
    /// execve(2) then fails with ETXTBSY. The other process may be an installer, or a child that has inherited the
    /// descriptor of the installer and has not called execve(2) yet.
    private func start(
        _ command: [String],
        _ environment: [String: String],
        _ output: Output
    ) throws(SystemError) -> pid_t {
        let deadline = BootInstant.now.advanced(by: Self.longestWriting)
        while true {
            do throws(SystemError) {
                return try Self.awaited.withLock { awaited throws(SystemError) in
                    // Under the lock, because the child may end before its id is known.
                    let child = try Self.spawn(command, environment, output)
                    awaited.insert(child)
                    return child
                }
            } catch {
                let isTerminated = state.withLock { $0.signal != nil }
                guard error.errno == ETXTBSY, !isTerminated, BootInstant.now < deadline else { throw error }
                usleep(Self.restartPause)
            }
        }
    }

    private static func spawn(
        _ command: [String],
        _ environment: [String: String],
        _ output: Output
    ) throws(SystemError) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        add(output, to: &actions)
        // Libraries may have opened files without O_CLOEXEC.
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        // The thread that starts the program blocks all signals, and the service ignores some.
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP
        posix_spawnattr_setflags(&attributes, Int16(flags))
        var pid: pid_t = 0
        let error = withCStrings(command) { argv in
            withCStrings(environment.map { "\($0)=\($1)" }) { envp in
                posix_spawn(&pid, command[0], &actions, &attributes, argv, envp)
            }
        }
        guard error == 0 else { throw SystemError(call: "posix_spawn", errno: error) }
        return pid
    }

    private static func add(_ output: Output, to actions: inout posix_spawn_file_actions_t) {
        switch output {
        case .log:
            posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)
        case .descriptor(let descriptor):
            posix_spawn_file_actions_adddup2(&actions, descriptor, STDOUT_FILENO)
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
        }
    }
}

// MARK: - Reaping

extension ChildProcess {
    /// Reaps the ended children of process 1 that no thread waits for; does nothing in other processes.
    ///
    /// A process whose parent has ended becomes a child of process 1 of its PID namespace. In a container this can be
    /// netwatch, and the processes that programs of hooks leave behind would otherwise stay zombies.
    package static func reapOrphans() {
        guard getpid() == 1 else { return }
        awaited.withLock { awaited in
            while let child = endedChild(), !awaited.contains(child) { _ = waitpid(child, nil, WNOHANG) }
        }
    }

    /// Returns the exit status of a child that has ended. The kernel shows only one of the ended children at a time, so
    /// others may have been hidden by this one.
    private static func reap(_ child: pid_t) -> CInt {
        let status = awaited.withLock { awaited in
            var status: CInt = 0
            // Under the lock, because afterwards another child may get the same id.
            while waitpid(child, &status, 0) == -1, errno == EINTR {}
            awaited.remove(child)
            return status
        }
        reapOrphans()
        return status
    }

    /// Returns one of the children that have ended and were not reaped; `nil` if there is none.
    private static func endedChild() -> pid_t? {
        var information = siginfo_t()
        guard waitid(P_ALL, 0, &information, WEXITED | WNOHANG | WNOWAIT) == 0 else { return nil }
        let child = information._sifields._sigchld.si_pid
        return child == 0 ? nil : child
    }
}

// MARK: - Output

extension ChildProcess {
    /// The default capacity of a pipe: 64 KiB; see pipe(7).
    private static let pipeCapacity = 64 * 1024

    /// Runs a program until it ends, and returns what it has written to standard output. A program that writes more
    /// than 64 KiB waits until the timeout.
    ///
    /// - Parameters:
    ///   - command: The path of the program, and its arguments.
    ///   - environment: All variables of its environment.
    ///   - timeout: When the program receives SIGTERM. 2 s later it receives SIGKILL.
    /// - Returns: `nil` if the program could not be started or has failed.
    package static func output(
        of command: [String],
        environment: [String: String],
        timeout: Duration
    ) async -> [UInt8]? {
        var ends: [CInt] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC) == 0 else { return nil }
        let (reader, writer) = (ends[0], ends[1])
        defer {
            close(reader)
            close(writer)
        }
        let result = await ChildProcess().run(
            command,
            environment: environment,
            output: .descriptor(writer),
            timeout: timeout
        )
        guard case .success(.exited(0)) = result else { return nil }
        return contents(ofPipe: reader)
    }

    /// Returns the bytes in a pipe, without waiting for other processes that could write to it.
    private static func contents(ofPipe reader: CInt) -> [UInt8] {
        _ = fcntl(reader, F_SETFL, O_NONBLOCK)
        return [UInt8](unsafeUninitializedCapacity: pipeCapacity) { buffer, count in
            count = max(0, read(reader, buffer.baseAddress, buffer.count))
        }
    }
}
