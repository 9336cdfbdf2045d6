internal import Dispatch
internal import Foundation
internal import Glibc
internal import NetwatchEventLoop

/// Exports the readable requests of a store that was set aside, to a file in the store's new directory.
struct Salvager {
    private static let maximumLostEntries = 1000

    private let directory: String
    private let keys: KeyRing?

    /// - Parameter keys: The keys of an encrypted store. Without them, encrypted requests are left out of the export.
    init(directory: String, keys: KeyRing? = nil) {
        self.directory = directory
        self.keys = keys
    }

    /// Writes the export, and returns what was saved and what was lost.
    ///
    /// - Throws: ``QueueError`` if the export cannot be written. Damage of the store is not an error.
    func run() async throws -> Salvage {
        let file = try await offPool { () throws(SystemError) in try SalvageFile(in: directory) }
        var salvage = Salvage(path: file.path)
        let spool = try await BodySpool.opening("\(directory)/spool", keys: keys)
        let rows = try await open(&salvage)
        var trailer = try ExportTrailer()
        try await write(ArchiveFormat.header(created: .now, includingDead: true), to: file, &trailer)
        if let rows {
            for part in [ExportCursor.Part.waiting, .dead] {
                let before = trailer.requests
                try await write(part, of: rows, spool, to: file, &trailer, &salvage)
                if part == .waiting { salvage.waiting = trailer.requests - before }
                if part == .dead { salvage.dead = trailer.requests - before }
            }
            salvage.counted = await rows.counted()
            salvage.add(rows.damage)
            await closed(rows)
        }
        let end = trailer.finish()
        try await offPool { () throws(SystemError) in
            try file.append(end)
            try file.sync()
        }
        return salvage
    }

    private func open(_ salvage: inout Salvage) async throws -> SalvagedRows? {
        do {
            return try await DispatchQueue.global().run { [directory, keys] in
                try SalvagedRows(in: directory, Sealer(keys: keys, lastKeyID: nil))
            }
        } catch {
            salvage.notes.append("the database cannot be opened: \(error)")
            return nil
        }
    }

    private func write(
        _ part: ExportCursor.Part,
        of rows: SalvagedRows,
        _ spool: BodySpool,
        to file: SalvageFile,
        _ trailer: inout ExportTrailer,
        _ salvage: inout Salvage
    ) async throws {
        var cursor: ExportCursor? = ExportCursor(part: part, position: 0)
        while let place = cursor {
            var page = PageWriter(limit: 1 << 20, spool: spool)
            cursor = try await page.fill(from: rows, after: place, includingDead: false)
            try await write(page.data, to: file, &trailer)
            salvage.lostCount += page.leftOut.count
            salvage.lost += page.leftOut.prefix(Self.maximumLostEntries - salvage.lost.count)
        }
    }

    private func write(_ data: Data, to file: SalvageFile, _ trailer: inout ExportTrailer) async throws {
        trailer.add(data)
        try await offPool { () throws(SystemError) in try file.append(data) }
    }

    private func closed(_ rows: SalvagedRows) async {
        await DispatchQueue.global().run { rows.close() }
    }

    private func offPool<Value: Sendable>(
        _ body: @escaping @Sendable () throws(SystemError) -> Value
    ) async throws -> Value {
        do {
            return try await DispatchQueue.global().run(body)
        } catch {
            let isFull = [ENOSPC, EDQUOT].contains(error.errno)
            throw QueueError(
                isFull ? .insufficientSpace : .spoolFailed,
                "the salvaged requests cannot be written: \(error)",
                path: directory
            )
        }
    }
}

extension Salvage {
    fileprivate mutating func add(_ damage: (gaps: [ClosedRange<Int64>], notes: [String])) {
        gaps += damage.gaps
        notes += damage.notes
    }
}

/// The file to which the export is written. Its methods block.
private final class SalvageFile: Sendable {
    let path: String
    private let file: FileDescriptor

    /// Creates the file `export.ndjson`, or `export-2.ndjson` and so on if that exists.
    init(in directory: String) throws(SystemError) {
        var (path, number) = ("\(directory)/export.ndjson", 1)
        while access(path, F_OK) == 0 {
            number += 1
            path = "\(directory)/export-\(number).ndjson"
        }
        self.path = path
        file = try FileDescriptor.openingPrivate(path)
    }

    func append(_ data: Data) throws(SystemError) {
        var rest = data
        while !rest.isEmpty {
            let bytes = rest
            let count = try systemCall("write \(path)") {
                bytes.withUnsafeBytes { write(file.rawValue, $0.baseAddress, $0.count) }
            }
            rest = rest.dropFirst(count)
        }
    }

    func sync() throws(SystemError) {
        try systemCall("fsync \(path)") { fsync(file.rawValue) }
    }
}
