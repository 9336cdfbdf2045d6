internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue

/// The spool's directory on a ``SimulatedDisk``, whose calls can be made to fail.
final class SimulatedSpoolFiles: SpoolFiles {
    /// The faults of the disk.
    struct Fault: Sendable {
        /// The number of the call that fails, counted from 1. By default none fails.
        var failingCall = Int.max
        /// The error of the call that fails.
        var errno = EIO
        /// The number of the first call after the power cut. This call and all later ones fail.
        var powerCut = Int.max
        /// Whether syncs report success without effect, as if the code under test had omitted them.
        var ignoresSync = false
        var ignoresDirectorySync = false
        /// The capacity of the disk in bytes.
        var capacity = Int.max
    }

    fileprivate struct State: Sendable {
        var disk: SimulatedDisk
        var fault: Fault
        var calls = 0
    }

    let path = "/spool"
    /// The names of the calls that succeeded.
    let log = Recorder<String>()
    /// The files outside the spool by path. The value lists the content at the first read, at the second read, and so
    /// on.
    let foreign: [String: [[UInt8]]]
    /// Whether files can be cloned.
    let canClone: Bool
    fileprivate let state: Lock<State>

    init(
        _ disk: SimulatedDisk = SimulatedDisk(),
        foreign: [String: [[UInt8]]] = [:],
        canClone: Bool = false,
        fault: Fault = Fault()
    ) {
        self.foreign = foreign
        self.canClone = canClone
        state = Lock(State(disk: disk, fault: fault))
    }

    var disk: SimulatedDisk { state.withLock { $0.disk } }

    /// The number of calls so far.
    var calls: Int { state.withLock { $0.calls } }

    /// Whether the call that should fail has been made.
    var hasFailed: Bool { state.withLock { $0.calls >= $0.fault.failingCall } }

    func create(_ name: String) throws(SystemError) -> any SpoolFile {
        let node = try call("create") { state throws(SystemError) in
            guard state.disk.node(named: name) == nil else { throw SystemError(call: "open", errno: EEXIST) }
            return state.disk.create(name)
        }
        return SimulatedSpoolFile(self, node)
    }

    func open(_ name: String) throws(SystemError) -> any SpoolFile {
        SimulatedSpoolFile(self, try call("open") { state throws(SystemError) in try state.node(name) })
    }

    func inode() throws(SystemError) -> Inode? { nil }

    func openExternal(_ path: String) throws(SystemError) -> any SpoolFile {
        let content = try call("openForeign") { [foreign] _ throws(SystemError) in
            guard let content = foreign[path] else { throw SystemError(call: "open", errno: ENOENT) }
            return content
        }
        return ForeignFile(self, content)
    }

    func rename(_ name: String, to newName: String) throws(SystemError) {
        try call("rename") { state throws(SystemError) in
            state.disk.rename(name, newName, try state.node(name))
        }
    }

    func remove(_ name: String) throws(SystemError) {
        try call("remove") { state throws(SystemError) in
            _ = try state.node(name)
            state.disk.unlink(name)
        }
    }

    func syncDirectory() throws(SystemError) {
        try call("syncDirectory") { if !$0.fault.ignoresDirectorySync { $0.disk.syncNames() } }
    }

    func names() throws(SystemError) -> [String] { try call("names") { $0.disk.names } }

    func freeBytes() throws(SystemError) -> Int64 {
        try call("freeBytes") { Int64($0.fault.capacity - $0.disk.byteCount) }
    }

    fileprivate func call<Result: Sendable>(
        _ name: String,
        orFail fail: (inout State) -> Void = { _ in },
        _ body: (inout State) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
        let result = try state.withLock { state throws(SystemError) in
            state.calls += 1
            if state.calls >= state.fault.powerCut { throw SystemError(call: name, errno: EIO) }
            if state.calls == state.fault.failingCall {
                fail(&state)
                throw SystemError(call: name, errno: state.fault.errno)
            }
            return try body(&state)
        }
        log.record(name)
        return result
    }
}

extension SimulatedSpoolFiles.State {
    fileprivate func node(_ name: String) throws(SystemError) -> Int {
        guard let node = disk.node(named: name) else { throw SystemError(call: "open", errno: ENOENT) }
        return node
    }
}

private final class SimulatedSpoolFile: SpoolFile {
    private let files: SimulatedSpoolFiles
    private let node: Int

    init(_ files: SimulatedSpoolFiles, _ node: Int) {
        self.files = files
        self.node = node
    }

    func size() throws(SystemError) -> Int64 {
        try files.call("size") { Int64($0.disk.content(of: node).count) }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        let content = try files.call("read") { $0.disk.content(of: node) }
        return copy(content, from: offset, into: buffer)
    }

    /// Writes as many bytes as fit on the disk. Throws `ENOSPC` if none fit.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        let bytes = Array(bytes)
        return try files.call("write") { state throws(SystemError) in
            let count = min(bytes.count, max(0, state.fault.capacity - state.disk.byteCount))
            if count == 0, !bytes.isEmpty { throw SystemError(call: "write", errno: ENOSPC) }
            state.disk.write(Array(bytes.prefix(count)), to: node, at: Int(offset))
            return count
        }
    }

    func clone(_ source: any SpoolFile) -> Bool {
        guard files.canClone, let source = source as? ForeignFile else { return false }
        let isDone = try? files.call("clone") { state in
            guard state.disk.byteCount + source.content.count <= state.fault.capacity else { return false }
            state.disk.write(source.content, to: node, at: 0)
            return true
        }
        return isDone ?? false
    }

    func sync() throws(SystemError) {
        try files.call("sync", orFail: { $0.disk.failSync(node) }) { state in
            if !state.fault.ignoresSync { state.disk.sync(node) }
        }
    }
}

/// A file outside the spool.
private final class ForeignFile: SpoolFile {
    private let files: SimulatedSpoolFiles
    private let versions: Lock<ArraySlice<[UInt8]>>

    init(_ files: SimulatedSpoolFiles, _ versions: [[UInt8]]) {
        self.files = files
        self.versions = Lock(versions[...])
    }

    var content: [UInt8] { versions.withLock { $0.first ?? [] } }

    func size() throws(SystemError) -> Int64 { try files.call("size") { _ in Int64(content.count) } }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        try files.call("readForeign") { _ in }
        defer { versions.withLock { if $0.count > 1 { $0.removeFirst() } } }
        return copy(content, from: offset, into: buffer)
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(SystemError) -> Int {
        throw SystemError(call: "write", errno: EBADF)
    }

    func clone(_ source: any SpoolFile) -> Bool { false }

    func sync() throws(SystemError) { throw SystemError(call: "fdatasync", errno: EBADF) }
}

private func copy(_ content: [UInt8], from offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    content.withUnsafeBytes { content in
        let bytes = content.dropFirst(Int(offset)).prefix(buffer.count)
        buffer.copyBytes(from: bytes)
        return bytes.count
    }
}
