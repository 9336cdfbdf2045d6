internal import CNetwatchFaultVFS
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

/// A fault that makes SQLite's calls on the files of one directory fail. It lasts until ``end()`` or the last use of
/// the value.
struct DiskFault: ~Copyable {
    /// The calls that fail, and the result that they return.
    struct Kind: Hashable, Sendable, CustomTestStringConvertible {
        let testDescription: String
        let calls: UInt32
        /// An SQLite result code (sqlite.org/rescode.html).
        let result: CInt

        private init(_ name: String, _ call: netwatch_call, _ result: CInt, and calls: [netwatch_call] = []) {
            testDescription = name
            self.calls = calls.reduce(call.rawValue) { $0 | $1.rawValue }
            self.result = result
        }

        static let openEIO = Kind("open: cannot open", NETWATCH_CALL_OPEN, 14)
        static let readEIO = Kind("read: EIO", NETWATCH_CALL_READ, 266)
        static let writeEIO = Kind("write: EIO", NETWATCH_CALL_WRITE, 778)
        static let writeENOSPC = Kind("write: ENOSPC", NETWATCH_CALL_WRITE, 13)
        static let syncEIO = Kind("fsync: EIO", NETWATCH_CALL_SYNC, 1034)
        static let truncateEIO = Kind("truncate: EIO", NETWATCH_CALL_TRUNCATE, 1546)
        static let deleteEIO = Kind("unlink: EIO", NETWATCH_CALL_DELETE, 2570)
        static let indexENOSPC = Kind("map the index: ENOSPC", NETWATCH_CALL_SHM, 4874)
        /// The disk reports success for a sync, but writes nothing. No call fails.
        static let syncLie = Kind("fsync without effect", NETWATCH_CALL_SYNC, 0)

        /// All calls fail, which has the effect of a crash.
        static let end = Kind(
            "everything",
            NETWATCH_CALL_OPEN,
            266,
            and: [
                NETWATCH_CALL_READ, NETWATCH_CALL_WRITE, NETWATCH_CALL_SYNC, NETWATCH_CALL_TRUNCATE,
                NETWATCH_CALL_DELETE, NETWATCH_CALL_SHM,
            ]
        )

        /// The faults that can occur during a commit.
        static let ofCommits = [writeEIO, writeENOSPC, syncEIO]
        static let all = [
            openEIO, readEIO, writeEIO, writeENOSPC, syncEIO, truncateEIO, deleteEIO, indexENOSPC,
        ]
    }

    private let number: CInt

    /// Installs the VFS that can inject faults, for every database that is opened from now on.
    static func install() throws {
        guard netwatch_fault_vfs_install() == 0 else { throw SystemError(call: "install VFS", errno: EINVAL) }
    }

    /// - Parameters:
    ///   - directory: The directory of the files on which calls fail. The files must be opened after ``install()``.
    ///   - first: The number of the first call that fails; 1 is the next call.
    ///   - persists: Whether all later calls of the kind fail, too.
    init(_ kind: Kind, at directory: String, first: Int, persists: Bool) throws {
        let fault = netwatch_fault(
            calls: kind.calls,
            result: kind.result,
            first: first,
            persists: persists ? 1 : 0,
            kills: 0
        )
        let number = netwatch_fault_arm(directory, fault)
        guard number >= 0 else { throw SystemError(call: "arm a fault", errno: ENOSPC) }
        self.number = number
    }

    deinit { netwatch_fault_disarm(number) }

    /// A function that returns the number of calls so far. It must be called only while the fault lasts.
    var calls: @Sendable () -> Int {
        { [number] in netwatch_fault_calls(number) }
    }

    /// Ends the fault. Later calls succeed.
    consuming func end() {}
}

/// A simulated power cut: all unsynced data is lost, but the process continues.
enum PowerCutDisk {
    private static let marker = "power-cut-queue"

    /// Creates a directory on the simulated disk and returns its path. A database in it must be opened after this call.
    static func directory(in scratch: ScratchDirectory) throws -> String {
        try DiskFault.install()
        netwatch_power_cut_arm(marker, 0, 1)
        return scratch.file(marker)
    }

    /// Discards all unsynced data. Later calls on files of the directory that are still open fail.
    static func cutPower(in directory: String) {
        netwatch_power_cut(directory)
    }
}
