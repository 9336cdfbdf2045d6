internal import CNetwatchLinux

/// The network namespace in which a component opens its sockets.
///
/// A socket stays in the namespace of the thread that opened it. A thread that stayed in a namespace would pass it on
/// to new threads. Dispatch starts workers from any thread that submits work, and a worker keeps that thread's
/// namespace for life. A program's callbacks would then open their own sockets in the wrong namespace. So a thread
/// enters the namespace only to open a socket or to look up a name. It must not submit work or start a thread while
/// it is inside.
package final class SocketNamespace: Sendable {
    private let target: FileDescriptor
    private let home: FileDescriptor
    private let path: String

    /// Opens a namespace. ``run(_:)`` enters it.
    ///
    /// - Parameter path: `/run/netns/NAME`, `/proc/PID/ns/net`.
    /// - Throws: ``SystemError`` of `open`, or of `setns`: `EPERM` without `CAP_SYS_ADMIN` over this namespace and
    ///   that of the calling thread, `EINVAL` if the file is not a network namespace.
    package init(_ path: String) throws(SystemError) {
        self.path = path
        home = try FileDescriptor.opening("/proc/thread-self/ns/net")
        target = try FileDescriptor.opening(path)
        try run { () throws(SystemError) in }
    }

    /// Runs `body` on the calling thread inside the namespace. Other threads are not affected. Files are not affected
    /// either, because the mount namespace does not change.
    ///
    /// - Throws: ``SystemError`` of `setns`, and the errors of `body`.
    package func run<Result: ~Copyable>(_ body: () throws(SystemError) -> Result) throws(SystemError)
        -> Result
    {
        // A thread that may not enter its own namespace could not return to it.
        try enter(home, "/proc/thread-self/ns/net")
        try enter(target, path)
        defer { leave() }
        return try body()
    }

    /// Returns to the original namespace. Terminates the process on failure, because the thread would otherwise stay
    /// in the wrong namespace unnoticed.
    private func leave() {
        do throws(SystemError) {
            try enter(home, "/proc/thread-self/ns/net")
        } catch {
            preconditionFailure("\(error)")
        }
    }

    private func enter(_ namespace: borrowing FileDescriptor, _ path: String) throws(SystemError) {
        let descriptor = namespace.rawValue
        try systemCall("setns \(path)") { setns(descriptor, CLONE_NEWNET) }
    }
}
