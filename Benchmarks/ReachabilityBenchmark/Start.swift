internal import BenchmarkSupport
internal import Glibc

/// Measures the time from the start of a program to the first byte that it prints.
///
/// Arguments: the number of repetitions; the program and its arguments.
enum Start: Measurement {
    static let name = "start"

    static func run(_ arguments: [String]) {
        let times = (0..<Int(arguments[0])!).map { _ in measure(Array(arguments.dropFirst())) }
        printFigure("start", median(times))
    }

    /// Starts the program once. Returns the time until its first byte in milliseconds.
    private static func measure(_ command: [String]) -> Double {
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { fatalError("pipe") }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        posix_spawn_file_actions_addclose(&actions, ends[0])
        var arguments = command.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        let start = now()
        guard posix_spawn(&process, command[0], &actions, nil, &arguments, environ) == 0 else {
            fatalError("cannot start \(command[0])")
        }
        close(ends[1])
        var byte: UInt8 = 0
        guard read(ends[0], &byte, 1) == 1 else { fatalError("\(command[0]) printed nothing") }
        let end = now()
        close(ends[0])
        var status: CInt = 0
        waitpid(process, &status, 0)
        posix_spawn_file_actions_destroy(&actions)
        return Double(end - start) / 1e6
    }
}
