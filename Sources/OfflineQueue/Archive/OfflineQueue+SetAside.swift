internal import Dispatch

/// A store that was moved away, and what could be saved of it.
public struct SetAsideStore: Hashable, Sendable {
    /// What is wrong with it.
    public let reason: String
    /// Where its files are now. They are never removed.
    public let directory: String
    /// What was saved.
    public let salvage: Salvage
}

/// What could be read of a store that was set aside. Bodies of up to 64 KiB have no hash of their own: of bytes that
/// were changed within one nobody can know.
public struct Salvage: Hashable, Sendable {
    /// The file to be imported. It is an export like any other.
    public let path: String
    /// How many requests on their way were saved.
    public internal(set) var waiting = 0
    /// How many requests were saved that had been given up.
    public internal(set) var dead = 0
    /// How many requests were on their way by the store's own count; `nil` when that cannot be read either.
    public internal(set) var counted: Int?
    /// Requests that could be read, but not as a whole. At most 1000 are told.
    public internal(set) var lost: [ExportPage.LeftOut] = []
    /// How many there were of those.
    public internal(set) var lostCount = 0
    /// Where rows could not be read at all: between these places of the order in which requests came in, of which
    /// some may have been free.
    public internal(set) var gaps: [ClosedRange<Int64>] = []
    /// What was not read, and why, when it concerns more than single requests.
    public internal(set) var notes: [String] = []

    /// Whether everything was saved, as far as anybody can tell.
    public var isWhole: Bool {
        lostCount == 0 && gaps.isEmpty && notes.isEmpty && waiting >= counted ?? 0
    }
}

extension OfflineQueue {
    /// Moves a damaged store to `damaged-TIME` in the queue's directory, bodies included, and writes what can be read
    /// of it to an export there, which ``importRequests(from:)`` takes. Nothing is deleted. The next opening begins an
    /// empty store.
    ///
    /// - Parameters:
    ///   - directory: The queue's directory, which no process may own.
    ///   - evenIfSound: Whether it is done to a store in which a full check finds nothing, too. Default `false`.
    /// - Returns: What was done; `nil` when the store is sound and was left alone. It can then be opened again, even if
    ///   it was refused as damaged before.
    /// - Throws: ``QueueError``: `alreadyOwned`, `directoryUnusable`, `storeUnavailable`; `storeUnusable` for a database
    ///   of another program or of a newer netwatch, which is left alone; `insufficientSpace` or `spoolFailed` when the
    ///   store was moved, but the export could not be written, for which there is ``salvage(_:)``.
    public static func setAside(directory: String, evenIfSound: Bool = false) async throws -> SetAsideStore? {
        let owned = try await DispatchQueue.global().run { try QueueDirectory(path: directory) }
        defer { owned.release() }
        guard let moved = try await SetAside(owned).run(evenIfSound: evenIfSound) else { return nil }
        return SetAsideStore(
            reason: moved.reason,
            directory: moved.path,
            salvage: try await salvage(moved.path)
        )
    }

    /// Reads a store that was set aside, and writes what can be read to a new export beside it. It may be done
    /// again.
    ///
    /// - Parameter directory: What ``setAside(directory:evenIfSound:)`` gave.
    /// - Throws: ``QueueError``: `directoryUnusable`, `insufficientSpace`, `spoolFailed`.
    public static func salvage(_ directory: String) async throws -> Salvage {
        try await Salvager(directory: directory).run()
    }
}
