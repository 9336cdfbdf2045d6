internal import Foundation
internal import Glibc
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Synchronization

/// What all seeds of a process share, and what must be as it was after each of them.
final class LawWorld: Sendable {
    /// Who answers, at the moment.
    private final class Answering: Sendable {
        let faults = Mutex<LawFaults?>(nil)
    }

    let engine: TransferEngine
    let server: ScriptedServer
    /// `nil` where namespaces cannot be made: then no path is lost.
    let paths: LawPaths?
    let tls: LawTLS?
    /// A file to upload, and the places where downloads are kept.
    let scratch: ScratchDirectory
    private let temporary: ScratchDirectory
    private let answering: Answering
    private let stock = Mutex<(descriptors: [String: Int], files: [String])>(([:], []))

    init(_ tls: LawTLS?) throws {
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
        // In the same process: what it holds is counted too, and goes when the client's side has gone.
        server = try ScriptedServer(script)
        paths = NetworkNamespace.isAvailable ? try LawPaths(script) : nil
    }

    func answer(with faults: LawFaults?) {
        answering.faults.withLock { $0 = faults }
    }

    // MARK: What is left

    /// Takes what there is for what there has to be after each seed.
    func takeStock() {
        let there = (Self.openDescriptors(), temporaryFiles)
        stock.withLock { $0 = there }
    }

    /// What is there that was not when stock was taken. What has gone since was about to go then.
    var additions: [String] {
        let open = Self.openDescriptors()
        return stock.withLock { stock in
            for (kind, count) in stock.descriptors {
                stock.descriptors[kind] = min(count, open[kind, default: 0])
            }
            let more = open.filter { $0.value > stock.descriptors[$0.key, default: 0] }
            let left = more.map {
                "descriptors: \($0.value) of \($0.key), \(stock.descriptors[$0.key, default: 0]) before"
            }
            return left + Set(temporaryFiles).subtracting(stock.files).map { "the file \($0) is left" }
        }
    }

    private var temporaryFiles: [String] {
        let all = FileManager.default.enumerator(atPath: temporary.path)?.compactMap { $0 as? String }
        return all?.filter { $0.contains(".") } ?? []
    }

    func leaveTemporaryFile() {
        _ = try? temporary.write([], to: "left.behind")
    }

    /// How many lead to what: `socket`, `anon_inode`, a path.
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
            // It may have been closed since it was listed.
            guard readlink("/proc/self/fd/\(name)", &target, target.count - 1) > 0 else { continue }
            let text = String(decoding: target.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
            counts[text.hasPrefix("socket:") ? "socket" : text, default: 0] += 1
        }
        return counts
    }
}
