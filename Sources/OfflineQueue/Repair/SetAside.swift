internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Moves a store away. After a crash at any time either the old store is in place, or no store can be opened: the
/// damage note is written first and removed last.
struct SetAside: Sendable {
    private static let files = [
        "queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "queue.sqlite-journal", "spool",
    ]

    private let directory: QueueDirectory

    /// - Parameter directory: The caller must hold its lock until ``run(evenIfSound:)`` returns.
    init(_ directory: QueueDirectory) {
        self.directory = directory
    }

    /// Returns the new path and the reason; `nil` when the store is sound and was not moved.
    func run(evenIfSound: Bool) async throws -> (path: String, reason: String)? {
        let found = await DispatchQueue.global().run { [directory] in
            directory.damage.target == nil ? nil : directory.damage.text
        }
        var reason = found
        if reason == nil { reason = try await diagnosis() }
        if reason == nil, evenIfSound { reason = "requested by the caller" }
        return try await DispatchQueue.global().run { [reason] in
            try usable { () throws(SystemError) in
                if let reason { return (try move(for: reason), reason) }
                try directory.damage.remove()
                return nil
            }
        }
    }

    /// Runs a full check. Returns what is wrong; `nil` when nothing is.
    ///
    /// - Throws: ``QueueError`` when the store must not be moved.
    private func diagnosis() async throws -> String? {
        do {
            let inspector = try await DispatchQueue.global().run { [directory] in
                if let damage = try QueueDatabase.leftoverLog(of: directory.databasePath)?.damage {
                    throw StoreFault.damaged(damage)
                }
                try QueueDatabase.checkReadOnly(directory.databasePath)
                let isNew = FileSystem.size(of: directory.databasePath) == 0
                return isNew ? nil : try Inspector(database: directory.databasePath)
            }
            return try await inspector?.structure().findings.first?.message
        } catch {
            switch StoreFault(error) {
            case .damaged(let reason): return reason
            case let fault: throw fault.error(path: directory.databasePath)
            }
        }
    }

    private func move(for reason: String) throws(SystemError) -> String {
        let target = if let begun = directory.damage.target { begun } else { try makeTarget() }
        try directory.damage.write(reason, target: target)
        for name in Self.files { try move(name, to: target) }
        try Directory.sync(target)
        try directory.damage.remove()
        return target
    }

    private func makeTarget() throws(SystemError) -> String {
        let time = Date().formatted(.iso8601.dateSeparator(.omitted).timeSeparator(.omitted))
        var (path, number) = ("\(directory.path)/damaged-\(time)", 1)
        while try !Directory.make(path, mode: 0o700) {
            number += 1
            path = "\(directory.path)/damaged-\(time)-\(number)"
        }
        return path
    }

    /// Moves a file, unless an earlier run has moved it. In that case opening the directory may have created an empty
    /// file in its place.
    private func move(_ name: String, to target: String) throws(SystemError) {
        let (old, new) = ("\(directory.path)/\(name)", "\(target)/\(name)")
        guard access(old, F_OK) == 0 else { return }
        guard access(new, F_OK) != 0 else {
            if isEmpty(old) { return }
            throw SystemError(call: "rename \(old)", errno: EEXIST)
        }
        try systemCall("rename \(old)") { rename(old, new) }
    }

    private func isEmpty(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    }

    private func usable<Value>(_ body: () throws(SystemError) -> Value) throws(QueueError) -> Value {
        do throws(SystemError) { return try body() } catch {
            throw QueueError(.directoryUnusable, "the store cannot be moved: \(error)", path: directory.path)
        }
    }
}
