internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Moves a damaged store into a new directory, so that the queue can start with an empty store.
///
/// The file `queue.damaged` is written first and removed last. While it exists, no store can be opened in the
/// directory. A crash therefore leaves either the old store in place, or a move that the next call completes.
struct SetAside: Sendable {
    private static let files = [
        "queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "queue.sqlite-journal", "spool",
        "queue.scan",
    ]

    private let directory: QueueDirectory

    /// - Parameter directory: The directory of the store. The caller must hold its locks until ``run(evenIfSound:)``
    ///   returns.
    init(_ directory: QueueDirectory) {
        self.directory = directory
    }

    /// Checks the store, and moves it if it is damaged. Completes a move that an earlier run has begun.
    ///
    /// - Parameter evenIfSound: Whether to move the store even if it is not damaged.
    /// - Returns: The new path and the reason for the move; `nil` if the store was not moved, because it is sound.
    /// - Throws: ``QueueError`` if the store cannot be checked or moved.
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

    /// Checks the whole store, and returns the first damage; `nil` if it is sound.
    ///
    /// - Throws: ``QueueError`` if the database belongs to another program or to a newer version, or if it cannot be
    ///   opened now.
    func diagnosis() async throws -> String? {
        if directory.isDatabaseLost { return "the database file is missing" }
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

    /// Moves a file, unless an earlier run has already moved it. In that case there may be a new, empty file at the old
    /// path, because opening the directory creates the database file.
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
