internal import CNetwatchLinux

/// The network namespace in which a component opens its sockets.
///
/// A socket stays in the namespace of the thread that opened it. So a thread enters the namespace only to open a socket
/// or to look up a name. It must not submit work or start a thread meanwhile.
///
/// A thread that stayed in the namespace would pass it on to new threads. Dispatch starts workers from any thread that
/// submits work, and a worker keeps that thread's namespace until it ends. The program's callbacks would then open
/// their own sockets in the wrong namespace.
package final class SocketNamespace: Sendable {
    private let target: FileDescriptor
    private let home: FileDescriptor
    private let path: String

    /// Opens a namespace, and checks that the calling thread may enter it.
    ///
    /// - Parameter path: The path of the namespace, such as `/run/netns/NAME` or `/proc/PID/ns/net`.
    /// - Throws: ``SystemError`` of `open` or `setns`. `setns` fails with `EPERM` without `CAP_SYS_ADMIN` over this
    ///   namespace and over the calling thread's namespace, and with `EINVAL` if the file is not a network namespace.
    package init(_ path: String) throws(SystemError) {
        self.path = path
        home = try FileDescriptor.opening("/proc/thread-self/ns/net")
        target = try FileDescriptor.opening(path)
        try run { () throws(SystemError) in }
    }

    /// Runs `body` on the calling thread inside the namespace. Other threads are not affected. Paths of files are not
    /// affected either, because the mount namespace does not change.
    ///
    /// - Throws: ``SystemError`` of `setns`, and the errors of `body`.
    package func run<Result: ~Copyable>(_ body: () throws(SystemError) -> Result) throws(SystemError)
        -> Result
    {
        // This checks that the thread will be able to return to its own namespace.
        try enter(home, "/proc/thread-self/ns/net")
        try enter(target, path)
        defer { leave() }
        return try body()
    }

    /// Returns to the original namespace. Ends the process on a failure, because the thread would otherwise continue in
    /// the wrong namespace.
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
