internal import CNetwatchLinux

/// The network namespace that a component opens its sockets in.
///
/// A socket belongs to the namespace of the thread that opens it, and stays there. A thread that stayed in a namespace
/// would also pass it on to every thread that is created because of it: Dispatch starts a worker from whichever thread
/// submits work, and the worker keeps that thread's namespace for as long as it lives. A program's callbacks would then
/// open their own sockets in the wrong namespace. So a thread enters the namespace only while it opens a socket, or looks
/// up a name, and must not submit work or start a thread meanwhile.
package final class SocketNamespace: Sendable {
    private let target: FileDescriptor
    private let home: FileDescriptor
    private let path: String

    /// Opens a namespace; `run` enters it.
    ///
    /// - Parameter path: `/run/netns/NAME`, `/proc/PID/ns/net`.
    /// - Throws: ``SystemError`` of `open`, or of `setns`: `EPERM` without `CAP_SYS_ADMIN` over this namespace and that of
    ///   the calling thread, `EINVAL` when the file is not a network namespace.
    package init(_ path: String) throws(SystemError) {
        self.path = path
        home = try FileDescriptor.opening("/proc/thread-self/ns/net")
        target = try FileDescriptor.opening(path)
        try run { () throws(SystemError) in }
    }

    /// Runs `body` on the calling thread inside the namespace. The process's other threads stay where they are, and so do
    /// files: the mounts do not change.
    ///
    /// - Throws: ``SystemError`` of `setns`, and what `body` throws.
    package func run<Result: ~Copyable>(_ body: () throws(SystemError) -> Result) throws(SystemError)
        -> Result
    {
        // A thread that may not enter its own namespace could not return to it.
        try enter(home, "/proc/thread-self/ns/net")
        try enter(target, path)
        defer { leave() }
        return try body()
    }

    /// A thread that stayed would break the promise of this type, and the program would never know.
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
