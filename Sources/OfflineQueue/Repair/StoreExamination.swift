/// The condition of a store that no process has open.
package struct StoreExamination: Hashable, Sendable {
    /// The first damage; `nil` if there is none.
    package let damage: String?
    /// The size of the database and its log in bytes; 0 if there is no database yet.
    package let databaseBytes: Int64
    /// The number of free bytes on the file system of the store.
    package let freeBytes: Int64
    /// The number of bytes that new requests must leave free: ``QueueLimits/diskReserve``, or less on a small file
    /// system; 0 if its size is not known.
    package let diskReserve: Int64
    /// Whether a queue with these limits would accept no requests, because less than ``diskReserve`` is free.
    package var isDiskFull: Bool { freeBytes < diskReserve }

    /// - Parameters:
    ///   - limits: The limits of the queue.
    ///   - space: The space of the file system; `nil` if it is not known.
    init(of directory: QueueDirectory, damage: String?, limits: QueueLimits, space: FileSystem.Space?) {
        self.damage = damage
        let database = directory.databasePath
        databaseBytes = FileSystem.size(of: database) + FileSystem.size(of: "\(database)-wal")
        freeBytes = space?.free ?? 0
        diskReserve = space.map(limits.diskReserve(of:)) ?? 0
    }
}
