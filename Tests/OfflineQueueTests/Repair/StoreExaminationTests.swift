internal import Glibc
internal import NetwatchTestSupport
internal import Testing

@testable internal import OfflineQueue

@Suite struct StoreExaminationTests {
    private let directory = try! ScratchDirectory()

    /// The default reserve is 64 MiB.
    @Test(arguments: [(nil, true), (32 << 20, false)] as [(Int64?, Bool)])
    func `the disk is full if less than the configured reserve is free`(reserve: Int64?, isFull: Bool) throws
    {
        let store = try QueueDirectory(existing: directory.path)
        defer { store.release() }
        var limits = QueueLimits()
        limits.diskReserve = reserve ?? limits.diskReserve
        var status = statvfs()
        (status.f_frsize, status.f_blocks, status.f_bavail) = (1 << 20, 1024, 50)
        let examination = StoreExamination(
            of: store,
            damage: nil,
            limits: limits,
            space: FileSystem.Space(status)
        )
        #expect(examination.isDiskFull == isFull && examination.freeBytes == 50 << 20)
        #expect(examination.diskReserve == reserve ?? 64 << 20)
    }

    @Test func `a read-only file system is recognized`() {
        var status = statvfs()
        #expect(!FileSystem.isReadOnly(status))
        status.f_flag = UInt(ST_RDONLY | ST_NOSUID)
        #expect(FileSystem.isReadOnly(status))
        #expect(
            !FileSystem.isReadOnly(at: directory.path) && !FileSystem.isReadOnly(at: directory.file("none"))
        )
    }

    @Test(arguments: [(true, "Read-only file system (disk I/O error)"), (false, "disk I/O error")])
    func `an error of SQLite is explained if the file system is read-only`(isReadOnly: Bool, message: String)
    {
        #expect(StoreFault.explained("disk I/O error", isReadOnly: isReadOnly) == message)
    }
}
