internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport

/// The servers, paths and files that all seeds of a process share. Each seed must leave them unchanged.
final class CompletionEnvironment: Sendable {
    /// The source of the server's responses in the current seed; `nil` between seeds.
    private final class Answering: Sendable {
        let faults = Lock<FaultyResponses?>(nil)
    }

    let engine: TransferEngine
    let server: ScriptedServer
    /// The paths that come and go; `nil` if namespaces cannot be created. In that case no path is ever lost.
    let paths: CompletionPaths?
    let tls: CompletionTLS?
    /// A directory that contains a file to upload, and the partial files that downloads keep.
    let scratch: ScratchDirectory
    private let temporary: ScratchDirectory
    private let answering: Answering
    private let baseline = Lock<(descriptors: [String: Int], files: [String])>(([:], []))

    init(_ tls: CompletionTLS?, hasPaths: Bool = true) throws {
        self.tls = tls
        scratch = try ScratchDirectory()
        _ = try scratch.write([UInt8](repeating: 7, count: 100_000), to: "body")
        temporary = try ScratchDirectory()
        setenv("TMPDIR", temporary.path, 1)
        engine = try TransferEngine()
        let answering = Answering()
        self.answering = answering
        let script: ScriptedServer.Script = { request in
            answering.faults.withLock { $0 }?.answer(request) ?? .close
        }
        // The server runs in this process, so its descriptors are counted, too. It closes them when the client has
        // closed its side.
        server = try ScriptedServer(script)
        paths = hasPaths && NetworkNamespace.isAvailable ? try CompletionPaths(script) : nil
    }

    func answer(with faults: FaultyResponses?) {
        answering.faults.withLock { $0 = faults }
    }

    // MARK: Leaks

    /// Records the current descriptors and files as the expected state after each seed.
    func recordBaseline() {
        let there = (Self.openDescriptors(), temporaryFiles)
        baseline.withLock { $0 = there }
    }

    /// Descriptions of the descriptors and files that did not exist when the baseline was recorded. If the process has
    /// closed descriptors since then, the baseline's counts are lowered, because these were about to be closed.
    var additions: [String] {
        let open = Self.openDescriptors()
        return baseline.withLock { baseline in
            for (kind, count) in baseline.descriptors {
                baseline.descriptors[kind] = min(count, open[kind, default: 0])
            }
            let more = open.filter { $0.value > baseline.descriptors[$0.key, default: 0] }
            let left = more.map {
                "descriptors: \($0.value) of \($0.key), \(baseline.descriptors[$0.key, default: 0]) before"
            }
            return left + Set(temporaryFiles).subtracting(baseline.files).map { "the file \($0) is left" }
        }
    }

    private var temporaryFiles: [String] {
        let all = FileManager.default.enumerator(atPath: temporary.path)?.compactMap { $0 as? String }
        return all?.filter { $0.contains(".") } ?? []
    }

    func leaveTemporaryFile() {
        _ = try? temporary.write([], to: "left.behind")
    }

    /// Returns the number of open descriptors by target: `socket`, `anon_inode`, or a path.
    private static func openDescriptors() -> [String: Int] {
        guard let directory = opendir("/proc/self/fd") else { return [:] }
        defer { closedir(directory) }
        var counts: [String: Int] = [:]
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard let number = CInt(name), number != dirfd(directory) else { continue }
            var target = [CChar](repeating: 0, count: 256)
            // The process may have closed the descriptor after it was listed.
            guard readlink("/proc/self/fd/\(name)", &target, target.count - 1) > 0 else { continue }
            let text = String(decoding: target.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
            counts[text.hasPrefix("socket:") ? "socket" : text, default: 0] += 1
        }
        return counts
    }
}
