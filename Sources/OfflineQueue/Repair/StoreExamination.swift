/// The condition of a store that no process has open.
package struct StoreExamination: Hashable, Sendable {
    /// The first damage; `nil` if there is none.
    package let damage: String?
    /// The size of the database and its log in bytes; 0 if there is no database yet.
    package let databaseBytes: Int64
    /// The number of free bytes on the file system of the store.
    package let freeBytes: Int64
    /// Whether a queue with these limits would accept no requests, because the file system has too little free space.
    package let isDiskFull: Bool

    /// - Parameters:
    ///   - limits: The limits of the queue.
    ///   - space: The space of the file system; `nil` if it is not known.
    init(of directory: QueueDirectory, damage: String?, limits: QueueLimits, space: FileSystem.Space?) {
        self.damage = damage
        let database = directory.databasePath
        databaseBytes = FileSystem.size(of: database) + FileSystem.size(of: "\(database)-wal")
        freeBytes = space?.free ?? 0
        let reserve = space.map(limits.diskReserve(of:)) ?? 0
        isDiskFull = freeBytes < reserve
    }
}
