internal import CNetwatchLinux
internal import Glibc
internal import NetwatchEventLoop

/// A network namespace without a name. The kernel removes it when no process uses it any more, even after a crash.
package final class NetworkNamespace: Sendable {
    private let descriptor: FileDescriptor
    private let loop: EventLoop

    /// The reason why this process cannot create namespaces, and what to do; `nil` if it can.
    package static let obstacle: String? = {
        do {
            _ = try NetworkNamespace()
            return nil
        } catch {
            return "\(error); run as root or inside `unshare -Urnm`"
        }
    }()

    package static var isAvailable: Bool { obstacle == nil }

    /// Creates a namespace.
    ///
    /// - Parameter hasLoopback: Whether to set its loopback interface up, because the kernel creates it down. Default:
    ///   `true`.
    package init(hasLoopback: Bool = true) throws {
        descriptor = try Self.unshared()
        loop = try EventLoop(
            label: "in-namespace",
            networkNamespace: "/proc/self/fd/\(descriptor.rawValue)"
        )
        if hasLoopback { try ip("link set lo up") }
    }

    private static func unshared() throws(SystemError) -> FileDescriptor {
        let outcome = ThreadResult<CInt>()
        try startDetachedThread(named: "unshare") {
            do throws(SystemError) {
                try systemCall("unshare") { unshare(CLONE_NEWNET) }
                let path = "/proc/thread-self/ns/net"
                outcome.give(.success(try systemCall("open") { open(path, O_RDONLY | O_CLOEXEC) }))
            } catch {
                outcome.give(.failure(error))
            }
        }
        return FileDescriptor(owning: try outcome.wait().get())
    }

    /// The kernel's name of the calling thread's network namespace, such as `net:[4026531840]`.
    package static var current: String {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = readlink("/proc/thread-self/ns/net", &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    /// The path of the namespace, which other threads and processes can open to enter it.
    package var path: String {
        "/proc/\(getpid())/fd/\(descriptor.rawValue)"
    }

    /// Runs a closure on a thread inside the namespace, and waits for its end.
    ///
    /// The closure must not start threads or submit work to Dispatch, because new threads would inherit the namespace;
    /// see `SocketNamespace`.
    package func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
        let loop = loop
        return loop.runAndWait {
            do throws(SystemError) {
                return try loop.inNetworkNamespace { () throws(SystemError) in body() }
            } catch {
                preconditionFailure("\(error)")
            }
        }
    }

    /// Sets a kernel parameter of the namespace.
    ///
    /// - Parameters:
    ///   - name: The path of the parameter below `/proc/sys`, such as `net/ipv4/ip_forward`.
    ///   - value: The new value.
    /// - Throws: ``SystemError`` of `open` or `write`.
    package func setParameter(_ name: String, to value: String) throws {
        // Files in `/proc/sys/net` belong to the namespace of the thread that opens them.
        let outcome: Swift.Result<Void, SystemError> = run {
            Swift.Result { () throws(SystemError) in try Self.write(value, to: "/proc/sys/\(name)") }
        }
        try outcome.get()
    }

    private static func write(_ text: String, to path: String) throws(SystemError) {
        let file = FileDescriptor(owning: try systemCall("open \(path)") { open(path, O_WRONLY | O_CLOEXEC) })
        let bytes = Array(text.utf8)
        let descriptor = file.rawValue
        try systemCall("write \(path)") { Glibc.write(descriptor, bytes, bytes.count) }
    }

    /// Runs a shell command inside the namespace and returns its output.
    ///
    /// - Throws: ``CommandFailure`` with the output if the command exits with a status other than 0.
    @discardableResult
    package func shell(_ command: String) throws -> String {
        try run { Swift.Result { try NetwatchTestSupport.shell(command) } }.get()
    }

    /// Runs `ip` once for each string, which contains its arguments.
    package func ip(_ commands: String...) throws {
        for command in commands { try shell("ip \(command)") }
    }
}

/// The error for a command that exited with a status other than 0, or could not be started (status -1).
package struct CommandFailure: Error, CustomStringConvertible {
    package let command: String
    package let output: String
    package let status: CInt

    package var description: String { "`\(command)` exited with status \(status): \(output)" }
}

/// Runs a shell command and returns its output, including standard error. Blocks the calling thread.
///
/// - Throws: ``CommandFailure`` with the output if the command exits with a status other than 0.
@discardableResult
package func shell(_ command: String) throws -> String {
    guard let stream = popen("{ \(command)\n} 2>&1", "re") else {
        throw CommandFailure(command: command, output: errnoDescription(errno), status: -1)
    }
    var output: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
        let count = fread(&chunk, 1, chunk.count, stream)
        let isInterrupted = count < chunk.count && ferror(stream) != 0 && errno == EINTR
        output += chunk[..<count]
        guard count == chunk.count || isInterrupted else { break }
        clearerr(stream)
    }
    let status = pclose(stream)
    let text = String(decoding: output, as: UTF8.self)
    guard status == 0 else { throw CommandFailure(command: command, output: text, status: status >> 8) }
    return text
}

/// A result that one thread gives and another thread waits for.
private final class ThreadResult<Value: Sendable>: Sendable {
    private let value = Lock<Result<Value, SystemError>?>(nil)
    private let isGiven = Gate()

    func give(_ result: Result<Value, SystemError>) {
        value.withLock { $0 = result }
        isGiven.open()
    }

    func wait() -> Result<Value, SystemError> {
        isGiven.wait()
        return value.withLock { $0! }
    }
}
