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
    /// A file to upload, and the places where downloads are kept.
    let scratch: ScratchDirectory
    private let temporary: ScratchDirectory
    private let answering: Answering
    private let descriptors = Mutex<[String]>([])

    init() throws {
        scratch = try ScratchDirectory()
        _ = try scratch.write([UInt8](repeating: 7, count: 100_000), to: "body")
        temporary = try ScratchDirectory()
        setenv("TMPDIR", temporary.path, 1)
        engine = try TransferEngine()
        let answering = Answering()
        self.answering = answering
        // In the same process: what it holds is counted too, and goes when the client's side has gone.
        server = try ScriptedServer { request in
            answering.faults.withLock { $0 }?.answer(request) ?? .close
        }
    }

    func answer(with faults: LawFaults?) {
        answering.faults.withLock { $0 = faults }
    }

    // MARK: What is left

    /// Remembers which descriptors are open.
    func takeStock() {
        let open = Self.openDescriptors()
        descriptors.withLock { $0 = open }
    }

    /// The descriptors that were not open when stock was taken, or have gone since.
    var changedDescriptors: [String] {
        let open = Self.openDescriptors()
        return descriptors.withLock { before in
            open.count == before.count ? [] : ["\(before.count) before: \(before)", "now: \(open)"]
        }
    }

    var temporaryFiles: [String] {
        let all = FileManager.default.enumerator(atPath: temporary.path)?.compactMap { $0 as? String }
        return all?.filter { $0.contains(".") } ?? []
    }

    func leaveTemporaryFile() {
        _ = try? temporary.write([], to: "left.behind")
    }

    /// What each of them leads to.
    private static func openDescriptors() -> [String] {
        guard let directory = opendir("/proc/self/fd") else { return [] }
        defer { closedir(directory) }
        var links: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard let number = CInt(name), number != dirfd(directory) else { continue }
            var target = [CChar](repeating: 0, count: 256)
            let length = readlink("/proc/self/fd/\(name)", &target, target.count - 1)
            // It may have been closed since it was listed.
            if length > 0 {
                links.append(String(decoding: target.prefix(length).map(UInt8.init), as: UTF8.self))
            }
        }
        return links.sorted()
    }
}
