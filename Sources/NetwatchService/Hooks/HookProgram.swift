internal import Glibc
internal import NetwatchEventLoop

/// A program that a hook runs, without a shell.
package struct HookProgram: Hashable, Sendable {
    /// The accepted timeouts: 1 s to 1 h.
    package static let acceptedTimeouts: ClosedRange<Duration> = .seconds(1)...Duration.seconds(3600)
    /// The default of ``timeout``: 30 s.
    package static let defaultTimeout = Duration.seconds(30)

    /// The absolute path of the program.
    package var path: String
    package var arguments: [String] = []
    /// The time after which the program is ended. Default: ``defaultTimeout``.
    package var timeout = HookProgram.defaultTimeout

    package init(path: String) {
        self.path = path
    }

    /// Says why this process cannot execute the program; `nil` if it can.
    package var fault: String? {
        guard access(path, X_OK) != 0 else { return nil }
        return "the program `\(path)` of a hook cannot be executed: \(errnoDescription(errno))"
    }
}
